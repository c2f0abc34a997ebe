import type { Cast } from './cast.ts'
import { type Plan, redrawSettings } from './plan.ts'
import type { Program } from './programs/program.ts'
import type { Dice } from './world/dice.ts'
import { noteSettings, type World } from './world/world.ts'

/** Lets things happen to those in the world, one after the other, until told to stop. */
export function direct(world: World, cast: Cast, plan: Plan, dice: Dice): { stop(): void } {
  const { scheduler, service, weather, shared, history } = world
  let isOver = false
  let brownouts = 0
  const later = (ms: number, act: () => void) => void scheduler.after(ms, () => !isOver && act())
  const someGroup = () => dice.pick(plan.groups as [Plan['groups'][0]])
  const someContainer = () => dice.pick(service.containers() as [ReturnType<typeof service.containers>[0]])

  function withSome(programs: Program[], act: (program: Program) => void) {
    const [first, ...others] = programs
    if (first) act(dice.pick([first, ...others]))
  }

  const everybody = () => [...cast.working(), ...cast.producers.filter(({ process }) => process.isAlive)]

  const placed = () => cast.working().filter(({ instanceId }) => instanceId !== undefined)

  type Acts = [() => void, ...(() => void)[]]
  const comingsAndGoings: Acts = [
    () => void cast.addConsumer(someGroup().name),
    () => {
      const guest = cast.addConsumer(someGroup().name)
      later(dice.spread(10, 5_000), () => guest && void cast.dismiss(guest))
    },
    () => withSome(cast.working(), program => void cast.dismiss(program)),
    // One that is restarted in its place.
    () =>
      withSome(placed(), program => {
        void cast.dismiss(program).then(() => {
          later(dice.spread(10, 20_000), () => cast.addConsumer(program.groupName ?? '', program.instanceId))
        })
      }),
    // A rolling deploy.
    () => {
      const { name } = someGroup()
      for (const [index, program] of cast.working(name).entries()) {
        later(index * dice.spread(1, 10_000), () => {
          cast.addConsumer(name)
          void cast.dismiss(program)
        })
      }
    },
    () => {
      const group = someGroup()
      const topicName = dice.pick(group.topicNames)
      const settings = redrawSettings(dice, group)
      noteSettings(world, group, settings)
      void shared.store.updateSubscription(group.name, topicName, settings)
    },
  ]

  const misfortunes: Acts = [
    () => withSome(everybody(), ({ process }) => process.kill()),
    () =>
      withSome(placed(), ({ process, groupName = '', instanceId }) => {
        process.kill()
        later(dice.spread(10, 20_000), () => cast.addConsumer(groupName, instanceId))
      }),
    // Two in one place: one of them has to end.
    () => withSome(placed(), ({ groupName = '', instanceId }) => void cast.addConsumer(groupName, instanceId)),
    () =>
      withSome(everybody(), ({ process }) => {
        process.pause()
        later(dice.spread(100, 60_000), process.resume)
      }),
    () =>
      withSome(everybody(), ({ network }) => {
        network.isCut = true
        later(dice.spread(100, 60_000), () => {
          network.isCut = false
        })
      }),
    () => someContainer().kill(),
    () => {
      someContainer().stepClock(dice.chance(0.5) ? dice.spread(1, 25_000) : -dice.spread(1, plan.maxStepBackMs))
      // From now on by the clock of some the leases of others are over early.
      cast.leases.stopWatching()
      world.recorder.delays.stopWatching()
    },
    () => {
      const container = someContainer()
      container.pause()
      later(dice.spread(1, 300), container.resume)
    },
    () => {
      brownouts++
      weather.throttled = 0.9
      later(dice.spread(500, 15_000), () => {
        // Another one may have begun meanwhile.
        if (--brownouts === 0) weather.throttled = plan.weather.throttled
      })
    },
    () => void reset(),
    () => {
      const { place } = somePlace() ?? {}
      if (!place) return
      void shared.store.setStopped(place, true)
      later(dice.spread(100, 20_000), () => void shared.store.setStopped(place, false))
    },
  ]

  /** A queue as a group has it. */
  function somePlace() {
    const { name: groupName, topicNames } = someGroup()
    const queueIds = world.queueIds.get(dice.pick(topicNames)) ?? []
    const ofGroup = [...world.recorder.queueIds].filter(([id]) => world.groupOf.get(id) === groupName)
    const [first, ...others] = ofGroup.filter(([, id]) => queueIds.includes(id))
    // A broadcast group has no place of its own.
    if (!first) return
    const [queueOffsetId, queueId] = dice.pick([first, ...others])
    return { place: { groupName, queueOffsetId }, queueId }
  }

  async function reset() {
    const some = somePlace()
    if (!some) return
    const { place, queueId } = some
    const end = await shared.endOf(queueId)
    const offset = dice.whole(0, end - 1)
    const op = history.resetInvoke('director', { group: place.groupName, queueId, offset })
    await shared.store.resetOffset(place, offset)
    cast.leases.forgetAll()
    history.resetOk('director', op)
  }

  const acts: Acts = plan.isClean || plan.outage ? comingsAndGoings : [...comingsAndGoings, ...misfortunes]

  function next() {
    for (let n = dice.pick([1, 1, 1, 3]); n > 0; n--) dice.pick(acts)()
    later(-Math.log(1 - dice.random()) * plan.actEveryMs, next)
  }

  for (const { name, consumers } of plan.groups) for (let n = 0; n < consumers; n++) cast.addConsumer(name)
  for (let n = 0; n < plan.producers; n++) cast.addProducer()
  later(dice.random() * plan.actEveryMs, next)
  if (plan.outage) {
    later(plan.outage.fromMs, () => {
      weather.isStoreAway = true
    })
    later(plan.outage.fromMs + plan.outage.lastsMs, () => {
      weather.isStoreAway = false
    })
  }
  return {
    stop() {
      isOver = true
    },
  }
}
