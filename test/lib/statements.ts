import assert from 'node:assert/strict'
import type { Template } from 'aws-cdk-lib/assertions'

/**
 * What the role of a function allows, by logical id of the resource; what it allows in some partitions alone as
 * `action of PREFIX*`. Fails on all that is not written so plainly.
 */
export function statementsOf(
  template: Template,
  functionId: string,
): { logGroup: string; statements: Record<string, string[]> } {
  const lambda = template.findResources('AWS::Lambda::Function')[functionId]
  assert.ok(lambda, functionId)
  const roleId: string = lambda.Properties.Role['Fn::GetAtt'][0]
  const role = template.findResources('AWS::IAM::Role')[roleId]
  assert.equal(role?.Properties.ManagedPolicyArns, undefined, 'a managed policy allows more than is needed')
  assert.equal(role?.Properties.Policies, undefined)

  const statements: Record<string, string[]> = {}
  for (const { Properties } of Object.values(template.findResources('AWS::IAM::Policy'))) {
    if (!Properties.Roles.some(({ Ref }: { Ref: string }) => Ref === roleId)) continue
    for (const { Effect, Action, Resource, Condition } of Properties.PolicyDocument.Statement) {
      assert.equal(Effect, 'Allow')
      const where = Condition === undefined ? '' : ` of ${partitionsOf(Condition)}`
      for (const resource of [Resource].flat()) {
        const [resourceId, attribute] =
          resource['Fn::GetAtt'] ?? assert.fail(`not a resource: ${JSON.stringify(resource)}`)
        assert.equal(attribute, 'Arn')
        statements[resourceId] = [
          ...(statements[resourceId] ?? []),
          ...[Action].flat().map(action => action + where),
        ].sort()
      }
    }
  }
  return { logGroup: lambda.Properties.LoggingConfig.LogGroup.Ref, statements }
}

/** The one condition that there is: keys of a table that begin so. */
function partitionsOf(condition: { [operator: string]: { [key: string]: string[] } }): string {
  const keys = condition['ForAllValues:StringLike']?.['dynamodb:LeadingKeys'] ?? []
  assert.deepEqual(condition, { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': keys } })
  assert.match(keys.join(), /^[A-Z]+#\*$/)
  return keys.join()
}
