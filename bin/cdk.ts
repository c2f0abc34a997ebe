import { App } from 'aws-cdk-lib'
import { PmqStack } from '../lib/pmq-stack.ts'

const app = new App()
new PmqStack(app, 'Pmq')
