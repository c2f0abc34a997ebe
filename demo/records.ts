import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A record to publish: what it is about (its key), and its text. */
export type DemoRecord = { key: string; body: string }

/**
 * Real data that comes inside npm packages: 3,201 films (`vega-datasets`), and the names of the world's countries in some
 * eighty languages and scripts (`i18n-iso-countries`).
 */
export async function readRecords(): Promise<DemoRecord[]> {
  const films = await readJson<Film[]>(join(folderOf('vega-datasets'), '..', 'data', 'movies.json'))
  const languages = await readLanguages()
  return [
    ...films.map(film => ({ key: film['Major Genre'] ?? 'no genre', body: JSON.stringify(film) })),
    ...languages.flatMap(({ locale, countries }) =>
      Object.entries(countries).map(([code, name]) => ({ key: locale, body: JSON.stringify({ locale, code, name }) })),
    ),
  ]
}

type Film = { 'Major Genre'?: string | null }
type Language = { locale: string; countries: Record<string, string | string[]> }

/** Every fourth language: enough for a demo that is over in seconds. */
const languageStep = 4

async function readLanguages(): Promise<Language[]> {
  const folder = join(folderOf('i18n-iso-countries'), 'langs')
  const files = (await readdir(folder)).filter((_, i) => i % languageStep === 0)
  return Promise.all(files.map(file => readJson<Language>(join(folder, file))))
}

const folderOf = (packageName: string) => fileURLToPath(new URL('.', import.meta.resolve(packageName)))

const readJson = async <T>(file: string): Promise<T> => JSON.parse(await readFile(file, 'utf8'))
