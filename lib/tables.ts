import { RemovalPolicy } from 'aws-cdk-lib'
import { AttributeType, BillingMode, Table, type TableProps } from 'aws-cdk-lib/aws-dynamodb'
import { Construct } from 'constructs'

/**
 * What the stack must never lose, so it outlives the stack and no update may delete or replace it: the construct path
 * of a table is part of its identity (a test pins the logical ids). Paid by request, since an idle queue costs nothing;
 * point-in-time recovery (0.20 USD per GB and month) is the only way back from a bug that deletes.
 */
const kept = {
  billingMode: BillingMode.PAY_PER_REQUEST,
  removalPolicy: RemovalPolicy.RETAIN,
  deletionProtection: true,
  pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
} as const satisfies Partial<TableProps>

/** The two tables: the log of messages, and the registry of everything else. `store/keys.ts` has the registry's keys. */
export class Tables extends Construct {
  /** One item per batch: queue id and base offset. */
  readonly log: Table
  readonly registry: Table

  constructor(scope: Construct, id: string) {
    super(scope, id)
    this.log = new Table(this, 'Log', {
      ...kept,
      partitionKey: { name: 'q', type: AttributeType.NUMBER },
      sortKey: { name: 'o', type: AttributeType.NUMBER },
      // A day after the end of retention: readers go by retention itself, and TTL may be late and in any order.
      timeToLiveAttribute: 'x',
    })
    this.registry = new Table(this, 'Registry', {
      ...kept,
      partitionKey: { name: 'pk', type: AttributeType.STRING },
      sortKey: { name: 'sk', type: AttributeType.STRING },
      // What tells of the past is kept for a time only; readers do not wait for TTL here either.
      timeToLiveAttribute: 'x',
    })
  }
}
