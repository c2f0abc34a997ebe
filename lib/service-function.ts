import { fileURLToPath } from 'node:url'
import { type Duration, RemovalPolicy } from 'aws-cdk-lib'
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam'
import { Architecture, Runtime } from 'aws-cdk-lib/aws-lambda'
import { type BundlingOptions, LogLevel, NodejsFunction, OutputFormat } from 'aws-cdk-lib/aws-lambda-nodejs'
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs'
import { Construct } from 'constructs'

const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * One file without dependencies. CommonJS loads some 20 ms faster than ESM; the AWS SDK is bundled, since the runtime's
 * own is larger, slower to load and changes without us. No source map: it would cost more to load than the code, and
 * the bundle can be rebuilt from its commit.
 */
const bundling: BundlingOptions = {
  format: OutputFormat.CJS,
  minify: true,
  mainFields: ['module', 'main'],
  bundleAwsSDK: true,
  sourceMap: false,
  logLevel: LogLevel.WARNING,
}

export type ServiceFunctionProps = {
  /** File in `functions/`, without its extension; it exports `handler`. */
  entry: string
  description: string
  timeout: Duration
  environment: Record<string, string>
}

/** A Lambda function of the service with a log group and a role of its own, which may write that log and nothing else. */
export class ServiceFunction extends Construct {
  readonly lambda: NodejsFunction
  readonly role: Role

  constructor(scope: Construct, id: string, props: ServiceFunctionProps) {
    super(scope, id)
    // Not the managed policy for Lambda, which lets a function write every log group of the account.
    this.role = new Role(this, 'Role', { assumedBy: new ServicePrincipal('lambda.amazonaws.com') })
    const logGroup = new LogGroup(this, 'Logs', {
      // Long enough to look back over a month end; logs hold no messages, so they may go with the stack.
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    })
    logGroup.grantWrite(this.role)
    this.lambda = new NodejsFunction(this, 'Function', {
      entry: `${root}functions/${props.entry}.ts`,
      projectRoot: root,
      depsLockFilePath: `${root}package-lock.json`,
      description: props.description,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      // CPU comes with memory, and a request mostly waits for DynamoDB: a larger function would be paid for waiting
      // (94 ms of this one cost as much as one write unit). It also holds the largest request, 5 MB, as text and parsed.
      memorySize: 512,
      timeout: props.timeout,
      environment: props.environment,
      bundling,
      role: this.role,
      logGroup,
    })
  }
}
