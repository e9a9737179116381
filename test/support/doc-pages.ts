import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const docs = join(import.meta.dirname, '../../docs')

/** The pages of docs/ as paths from the root, without what the site is built with and what TypeDoc writes. */
export function docPages(): string[] {
  const folders = readdirSync(docs, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && !['.vitepress', 'reference'].includes(entry.name),
  )
  const inFolders = folders.flatMap(({ name }) => readdirSync(join(docs, name), { encoding: 'utf8' }).map((page) => `${name}/${page}`))
  return [...readdirSync(docs), ...inFolders].filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)
}
