import { createClient } from 'pmq-sdk'
import { type Act, bodyOf, groupNameOf, publishAlong, type Shift, tags, topicName } from '../acts.ts'

/** Our own SDK as it comes, over HTTP. */
export async function workWithPmq(url: string, act: Act, shift: Shift): Promise<() => Promise<unknown>> {
  const client = createClient({ url })
  const { verb, perCall } = act
  if (verb === 'publish') {
    const newMessage = (n: number) => ({ body: bodyOf(n) })
    const end = publishAlong(act, shift, first =>
      perCall === 1
        ? client.publish(topicName, newMessage(first))
        : client.publish(
            topicName,
            Array.from({ length: perCall }, (_, i) => newMessage(first + i)),
          ),
    )
    return () => end().then(() => client.close())
  }
  // Those that the tag filters out count too: they are pulled and passed over.
  const each = act.by === 'tag' ? tags.length : 1
  const consumer = client.consumer({
    groupName: groupNameOf(act),
    ordering: act.by === 'key' ? 'key' : 'queue',
    topics: {
      async [topicName](received) {
        if (shift.closed) await shift.closed
        shift.messages += received.length * each
      },
    },
  })
  await consumer.start()
  return () => client.close()
}
