import { CfnOutput, Stack, type StackProps } from 'aws-cdk-lib'
import type { Construct } from 'constructs'
import { Pmq, type PmqProps } from './pmq.ts'

/** The service as one stack: `cdk deploy` and there is nothing to choose. */
export class PmqStack extends Stack {
  constructor(scope: Construct, id: string, props: StackProps & PmqProps = {}) {
    super(scope, id, { description: 'PMQ: topics, queues and consumer groups on DynamoDB and Lambda', ...props })
    const pmq = new Pmq(this, 'Pmq', props)
    new CfnOutput(this, 'AlarmTopic', {
      value: pmq.alarms.topic.topicArn,
      description: 'The SNS topic of the alarms: subscribe an e-mail address to it',
    })
    new CfnOutput(this, 'ApiUrl', { value: pmq.url, description: 'The URL to give to clients' })
  }
}
