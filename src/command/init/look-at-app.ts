import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import { manifestOf, ownManifest } from '../installed'
import type { Surroundings } from '../surroundings'
import { type Knexfile, readKnexfile } from './read-knexfile'

/** What `init` sees of the app before it asks anything. Paths are relative to the folder, with slashes. */
export interface App {
  readonly folder: string
  readonly language: 'TypeScript' | 'JavaScript'
  /** How a module of the app takes in another one. */
  readonly modules: 'ESM' | 'CommonJS'
  /** The file that starts the app; null: none was found. */
  readonly entry: string | null
  /** Where the auth module goes. */
  readonly authFile: string
  readonly knexfile: Knexfile | null
  /** The version of a package that the app can load; null: none. */
  installed(name: string): string | null
}

/** @throws CommandRefusal where the knexfile cannot be used, UsageError where nothing reads it, or package.json is no JSON */
export async function lookAtApp({ folder, env }: Pick<Surroundings, 'folder' | 'env'>): Promise<App> {
  const manifest = ownManifest(folder)
  const language = existsSync(join(folder, 'tsconfig.json')) ? 'TypeScript' : 'JavaScript'
  const entry = entryOf(folder, manifest)
  const isModule = manifest['type'] === 'module'
  const isMjs = language === 'JavaScript' && !isModule && entry?.endsWith('.mjs') === true
  const ending = language === 'TypeScript' ? 'ts' : isMjs ? 'mjs' : 'js'
  return {
    folder,
    language,
    modules: isModule || isMjs ? 'ESM' : 'CommonJS',
    entry,
    authFile: existsSync(join(folder, 'src')) ? `src/auth.${ending}` : `auth.${ending}`,
    knexfile: await readKnexfile({ folder, env }, isModule),
    installed: (name) => (manifestOf(folder, name)?.['version'] as string | undefined) ?? null, // npm's
  }
}

/** What `npm start` runs, else what package.json calls `main`, else a usual name. */
function entryOf(folder: string, { scripts, main }: Record<string, unknown>): string | null {
  const { start = '', dev = '' } = Object(scripts) as Record<string, unknown>
  const named = `${start} ${dev} ${main ?? ''}`.split(/\s+/).filter((word) => /\.[cm]?[jt]s$/.test(word))
  const usual = ['src/', ''].flatMap((place) =>
    ['app', 'server', 'index', 'main'].flatMap((name) => ['ts', 'js', 'mjs', 'cjs'].map((ending) => `${place}${name}.${ending}`)),
  )
  return [...named, ...usual].map((path) => posix.normalize(path)).find((path) => existsSync(join(folder, path))) ?? null
}
