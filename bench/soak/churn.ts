import { setTimeout as sleep } from 'node:timers/promises'
import { makeConsumer } from './consumers.ts'
import { publish } from './producers.ts'
import { type Setting, startProgram } from './program.ts'

/** Who comes and goes while the soak lasts, and who stays. */
export type Churn = {
  /** Ends what comes and goes, and all publishing. Who stays goes on to consume. */
  calm(): Promise<void>
  /** Ends the rest. */
  end(): Promise<void>
  /** How often something has come. */
  readonly counts: { consumers: number; producers: number; crashes: number; restarts: number }
}

/** Between two guests of a kind, and how long one stays at most. */
const everyMs = 1_000
const longestStayMs = 6_000
const restartEveryMs = 15_000
const faults = 0.02

export function startChurn(setting: Setting, groupNames: readonly string[]): Churn {
  const counts = { consumers: 0, producers: 0, crashes: 0, restarts: 0 }
  const calming = new AbortController()
  const { signal } = calming
  const steady = groupNames.map(groupName => {
    const program = startProgram(setting, `steady-${groupName}`, 0)
    const consumer = makeConsumer(program, groupName)
    void consumer.start().catch(error => setting.onDefect(`a consumer that stays could not start: ${error}`))
    return program
  })
  // Its client stays; its consumers and producers do not.
  const home = startProgram(setting, 'home', faults)
  const under = [publishSteadily(), restartAtHome(), bringGuests(inviteConsumer), bringGuests(inviteProducer)]

  async function publishSteadily() {
    const program = startProgram(setting, 'publisher', faults / 4)
    while (await pause(50)) {
      void publish(program, program.client, 3)
      if (Math.random() < 0.1) void publish(program, program.client, 20)
    }
    await program.close()
  }

  async function restartAtHome() {
    while (!signal.aborted) {
      counts.restarts++
      const groupName = groupNames[counts.restarts % groupNames.length] ?? ''
      const consumer = makeConsumer(home, groupName, counts.restarts % 3 === 0 ? { instanceId: 'home' } : {})
      await using producer = home.client.producer({ lingerMs: 5, maxInFlight: 2 })
      const started = consumer.start().catch(() => undefined)
      for (const endsAtMs = performance.now() + restartEveryMs; performance.now() < endsAtMs && (await pause(100)); ) {
        void publish(home, producer, 1)
      }
      await consumer.stop({ leave: Math.random() < 0.5 })
      await started
    }
    await home.close()
  }

  async function bringGuests(invite: (number: number) => Promise<void>) {
    const guests = new Set<Promise<void>>()
    for (let number = 1; await pause(everyMs * (0.5 + Math.random())); number++) {
      const guest = invite(number).finally(() => guests.delete(guest))
      guests.add(guest)
    }
    await Promise.all(guests)
  }

  async function inviteConsumer(number: number) {
    counts.consumers++
    const program = startProgram(setting, `consumer-${number}`, faults)
    const consumer = makeConsumer(program, groupNames[number % groupNames.length] ?? '', {
      syncCommit: Math.random() < 0.3,
      ordering: Math.random() < 0.5 ? 'key' : 'queue',
    })
    // Some are stopped before they have started.
    const started = consumer.start().catch(() => undefined)
    await pause(Math.random() * longestStayMs)
    await leave(program)
    await started
  }

  async function inviteProducer(number: number) {
    counts.producers++
    const program = startProgram(setting, `producer-${number}`, faults * 3)
    const producer = program.client.producer({ publishTimeoutMs: Math.random() < 0.5 ? 300 : 5_000, maxInFlight: 2 })
    const endsAtMs = performance.now() + Math.random() * longestStayMs
    const published: Promise<void>[] = []
    while (performance.now() < endsAtMs && (await pause(100))) published.push(publish(program, producer, 2))
    await leave(program)
    await Promise.all(published)
  }

  /** In order, or by a crash. */
  async function leave(program: ReturnType<typeof startProgram>) {
    if (Math.random() < 0.6) return program.close()
    counts.crashes++
    return program.crash()
  }

  /** False when there is to be calm. */
  async function pause(ms: number): Promise<boolean> {
    await sleep(ms, undefined, { signal }).catch(() => undefined)
    return !signal.aborted
  }

  return {
    counts,
    async calm() {
      calming.abort()
      await Promise.all(under)
    },
    async end() {
      await Promise.all(steady.map(program => program.close()))
    },
  }
}
