import { registerHooks } from 'node:module'
import { mutationName, mutations } from './mutations.ts'

/** Loaded first, makes one mistake in our sources as they are loaded. Which one says the environment. */
const mutation = mutations.find(({ name }) => name === process.env[mutationName])
if (!mutation) throw new Error(`there is no mutation "${process.env[mutationName]}"`)
const { file, search, replace } = mutation
const { href } = new URL(`../../../${file}`, import.meta.url)

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    if (url !== href) return loaded
    const source = String(loaded.source)
    if (!source.includes(search)) throw new Error(`${file} has no "${search}"`)
    return { ...loaded, source: source.replace(search, () => replace) }
  },
})
