import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import { manifestOf, ownManifest } from '../installed'
import type { Surroundings } from '../surroundings'
import { type Knexfile, readKnexfile } from './read-knexfile'

/** The facts about the app that `init` reads before it asks questions. Paths are relative to the folder, with slashes. */
export interface App {
  readonly folder: string
  readonly language: 'TypeScript' | 'JavaScript'
  readonly modules: 'ESM' | 'CommonJS'
  /** The file that starts the app; null if `init` finds no such file. */
  readonly entry: string | null
  /** The path of the auth module. */
  readonly authFile: string
  readonly knexfile: Knexfile | null
  /** Returns the version of a package that the app can load; null if the app cannot load the package. */
  installed(name: string): string | null
}

/**
 * Reads the app's folder.
 * @throws CommandRefusal if the knexfile cannot be used; UsageError if the knexfile cannot be loaded, or package.json is not valid JSON
 */
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
    installed: (name) => (manifestOf(folder, name)?.['version'] as string | undefined) ?? null, // npm writes a text
  }
}

/** Returns the file that `npm start` or `npm run dev` runs. If there is none, returns `main` of package.json, or a usual name. */
function entryOf(folder: string, { scripts, main }: Record<string, unknown>): string | null {
  const { start = '', dev = '' } = Object(scripts) as Record<string, unknown>
  const named = `${start} ${dev} ${main ?? ''}`.split(/\s+/).filter((word) => /\.[cm]?[jt]s$/.test(word))
  const usual = ['src/', ''].flatMap((place) =>
    ['app', 'server', 'index', 'main'].flatMap((name) => ['ts', 'js', 'mjs', 'cjs'].map((ending) => `${place}${name}.${ending}`)),
  )
  return [...named, ...usual].map((path) => posix.normalize(path)).find((path) => existsSync(join(folder, path))) ?? null
}
