/**
 * Runs concurrent code in every order that it can happen in. What the code does to the outside world goes through
 * `step`, where it stops until it is chosen; between two steps everything that can go on has gone on. A step may have
 * several outcomes (an answer, a lost answer): each is tried. So a scene is played again and again, until there is no
 * choice left that was not made.
 *
 * Two plays that come to the same world, with the same answers given to the same minds, go on alike: the second is not
 * played to its end. So `mind` has to name what a step's caller shares its memory with: usually a container.
 */
export async function explore(setUp: (stage: Stage) => Scene | Promise<Scene>): Promise<Exploration> {
  const history: History = { choices: [], minds: new Map(), states: new Set() }
  const exploration = { plays: 0, ends: 0 }
  do {
    exploration.plays++
    if (await play(setUp, history)) exploration.ends++
  } while (chooseNext(history.choices))
  return exploration
}

export type Stage = {
  /** Waits for its turn, and then for what it does. That must not take steps itself. */
  step<T>(mind: string, label: string, outcomes: Outcomes<T>): Promise<T>
}

/** What a step may do, asked for whenever it could be its turn. Named for the reader of a trace. None: not yet possible. */
export type Outcomes<T> = () => Record<string, () => T | Promise<T>>

export type Scene = {
  actors: Record<string, () => Promise<unknown>>
  /** All that the outside world holds. */
  world(): unknown
  /** Judges a play that has ended by what its actors resolved or rejected with; throws what is wrong. */
  judge(results: Record<string, unknown>): void | Promise<void>
  close?(): void | Promise<void>
}

/** How often the scene was played, and how often to an end that no earlier play had come to. */
export type Exploration = { plays: number; ends: number }

type History = {
  /** What to choose in the next play, step by step; behind it the first of what is possible. */
  choices: { taken: number; of: number }[]
  /** Each sequence of answers that a mind was given has a number. */
  minds: Map<string, number>
  states: Set<string>
}

/** Goes to the next choices, of which the last differs from those before; false: there are none. */
function chooseNext(choices: History['choices']): boolean {
  for (let last = choices.pop(); last; last = choices.pop()) {
    if (last.taken + 1 === last.of) continue
    choices.push({ taken: last.taken + 1, of: last.of })
    return true
  }
  return false
}

type Waiting = { mind: string; label: string; outcomes: Outcomes<unknown>; answer: (settled: Promise<unknown>) => void }

/** True if it came to an end, and not to a state that an earlier play has been in. */
async function play(setUp: (stage: Stage) => Scene | Promise<Scene>, history: History): Promise<boolean> {
  const { choices, minds, states } = history
  const waiting: Waiting[] = []
  const stage: Stage = {
    step: (mind, label, outcomes) =>
      new Promise((resolve, reject) => {
        const answer = (settled: Promise<unknown>) => void settled.then(value => resolve(value as never), reject)
        waiting.push({ mind, label, outcomes, answer })
      }),
  }
  const scene = await setUp(stage)
  const results: Record<string, unknown> = {}
  for (const [name, act] of Object.entries(scene.actors)) {
    const end = (result: unknown) => {
      results[name] = result
    }
    act().then(end, end)
  }

  const told = new Map<string, number>()
  const trace: string[] = []
  try {
    for (let depth = 0; ; depth++) {
      await settle()
      const possible = waiting.flatMap(step => Object.entries(step.outcomes()).map(outcome => ({ step, outcome })))
      if (depth >= choices.length) {
        const state = asText([
          scene.world(),
          [...told].sort(),
          waiting.map(({ mind, label }) => `${mind}: ${label}`).sort(),
        ])
        if (states.has(state)) return false
        states.add(state)
        if (possible.length === 0) break
        choices.push({ taken: 0, of: possible.length })
      }
      const chosen = possible[choices[depth]?.taken ?? 0]
      if (!chosen) throw new Error('the scene is not the same at each play')
      const { step, outcome } = chosen
      const [name, act] = outcome
      waiting.splice(waiting.indexOf(step), 1)
      const settled = attempt(act)
      const answer = await settled.then(asText, error => `! ${error}`)
      const line = `${step.mind}: ${step.label} → ${name}`
      trace.push(`${line} ${answer.slice(0, longestTold)}`)
      told.set(step.mind, numberOf(minds, `${told.get(step.mind) ?? ''} ${line} ${answer}`))
      step.answer(settled)
    }
    const unended = Object.keys(scene.actors).filter(name => !(name in results))
    if (unended.length > 0) throw new Error(`for ever waiting: ${unended.join(', ')}`)
    await scene.judge(results)
    return true
  } catch (error) {
    const story = trace.map((line, i) => `  ${i + 1}. ${line}`).join('\n')
    const ends = Object.entries(results).map(
      ([name, result]) => `  ${name}: ${result instanceof Error ? result : asText(result)}`,
    )
    throw new Error(`${(error as Error).message}\nafter\n${story}\nwith\n${ends.join('\n')}`, { cause: error })
  } finally {
    await scene.close?.()
  }
}

/** How much of an answer the trace of a failure shows, in characters. */
const longestTold = 200

const attempt = async (act: () => unknown) => act()
const asText = (value: unknown) => JSON.stringify(value) ?? 'undefined'
const settle = () => new Promise(resolve => setImmediate(resolve))

function numberOf(numbers: Map<string, number>, text: string): number {
  const number = numbers.get(text) ?? numbers.size
  numbers.set(text, number)
  return number
}
