import { Kafka, logLevel, Partitioners } from 'kafkajs'
import { type Act, bodyOf, groupNameOf, publishAlong, type Shift, topicName } from '../acts.ts'

/** KafkaJS as it comes. What it hands out in batches are whole fetches, however many messages they have. */
export async function workWithKafka(broker: string, act: Act, shift: Shift): Promise<() => Promise<unknown>> {
  const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING })
  if (act.verb === 'publish') {
    const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
    await producer.connect()
    const end = publishAlong(act, shift, first =>
      producer.send({
        topic: topicName,
        messages: Array.from({ length: act.perCall }, (_, i) => ({ value: bodyOf(first + i) })),
      }),
    )
    return () => end().then(() => producer.disconnect())
  }
  const consumer = kafka.consumer({ groupId: groupNameOf(act) })
  await consumer.connect()
  await consumer.subscribe({ topics: [topicName], fromBeginning: true })
  async function count(messages: number) {
    if (shift.closed) await shift.closed
    shift.messages += messages
  }
  await consumer.run(
    act.perCall === 1 ? { eachMessage: () => count(1) } : { eachBatch: ({ batch }) => count(batch.messages.length) },
  )
  return () => consumer.disconnect()
}
