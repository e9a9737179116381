import { existsSync } from 'node:fs'
import { dirname, isAbsolute, join, posix, relative } from 'node:path'
import type { Knex } from 'knex'
import { told } from '../failure'
import { loadModule, manifestOf, ownManifest } from '../load-module'
import { CommandRefusal, type Surroundings, UsageError } from '../terminal'

/** As `knex` uses the file in this environment. */
export interface Knexfile {
  /** Relative to the folder of the app, as `migrations`. */
  readonly path: string
  /** `flat`: the export itself. `by environment`: a member with the environment's name. Null: another place. */
  readonly shape: 'flat' | 'by environment' | null
  readonly isModule: boolean
  readonly config: Knex.Config
  readonly client: Client
  /** Relative inside the folder. Null: another database, or one in memory. */
  readonly sqliteFile: string | null
  readonly migrations: string
}

type Place = Pick<Surroundings, 'folder' | 'env'>

const places = ['', 'src/'].flatMap((place) => ['js', 'ts', 'cjs', 'mjs', 'cts', 'mts'].map((ending) => `${place}knexfile.${ending}`))

/**
 * In the folder or in `src`. Null: none.
 * @throws CommandRefusal if the knexfile throws, or names an unsupported database
 * @throws UsageError if the knexfile is TypeScript, tsx is missing, and Node cannot load the file
 */
async function readKnexfile({ folder, env }: Place, isPackageOfModules: boolean): Promise<Knexfile | null> {
  const path = places.find((candidate) => existsSync(join(folder, candidate)))
  if (path === undefined) return null
  const { exported, isPlain } = await exportOf(path, folder)
  const shape = typeof exported === 'function' || !isPlain ? null : isConfig(exported) ? 'flat' : 'by environment'
  const config = await configOf(exported, path, env['NODE_ENV'] || 'development')
  const client = providerClientOf(config.client)
  if (client === null)
    throw new CommandRefusal(
      'KNEXFILE',
      `${path} has the client ${JSON.stringify(config.client)}, and doorward works with better-sqlite3, pg and mysql2.`,
    )
  const directory = config.migrations?.directory ?? 'migrations'
  const newest = typeof directory === 'string' ? directory : (directory.at(-1) ?? 'migrations') // `knex migrate:make` does the same
  const isModule = /\.m[jt]s$/.test(path) || (isPackageOfModules && !/\.c[jt]s$/.test(path))
  return { path, shape, isModule, config, client, sqliteFile: sqliteFileOf(config, folder), migrations: posix.join(dirname(path), newest) }
}

function sqliteFileOf({ connection }: Knex.Config, folder: string): string | null {
  const filename: unknown = typeof connection === 'string' ? connection : Object(connection).filename
  if (typeof filename !== 'string' || filename === ':memory:') return null
  const inFolder = relative(folder, filename)
  return isAbsolute(filename) && !inFolder.startsWith('..') ? inFolder : filename
}

/** As knex reads it. `isPlain`: the default export, and `import` and `require` return the same value. */
async function exportOf(path: string, folder: string): Promise<{ exported: unknown; isPlain: boolean }> {
  try {
    const module = await loadModule(join(folder, path), folder)
    const outer = module['default'] ?? module
    const inner: unknown = Object(outer).default ?? outer
    return { exported: inner, isPlain: inner === module['default'] }
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new CommandRefusal('KNEXFILE', `${path} cannot be loaded: ${told(error)}`, { cause: error })
  }
}

async function configOf(exported: unknown, path: string, environment: string): Promise<Knex.Config> {
  const made: unknown = typeof exported === 'function' ? await exported() : exported
  const config: unknown = isConfig(made) ? made : Object(made)[environment]
  if (isConfig(config)) return config
  throw new CommandRefusal('KNEXFILE', `${path} has no configuration for the environment ${environment}.`)
}

function isConfig(value: unknown): value is Knex.Config {
  return Object(value).client !== undefined
}

/** Each is the name of knex's client and of the npm package. */
export const clients = ['better-sqlite3', 'pg', 'mysql2'] as const

export type Client = (typeof clients)[number]

export function providerClientOf(named: unknown): Client | null {
  const name = named === 'postgres' || named === 'postgresql' ? 'pg' : named // aliases of knex
  return clients.find((client) => client === name) ?? null
}

const libraries = { kysely: 'Kysely', 'drizzle-orm': 'Drizzle', '@prisma/client': 'Prisma' } as const

export type Library = (typeof libraries)[keyof typeof libraries]

function libraryOf({ dependencies, devDependencies }: Record<string, unknown>): Library | null {
  const names = { ...Object(devDependencies), ...Object(dependencies) }
  return Object.entries(libraries).find(([name]) => name in names)?.[1] ?? null
}

/** `init` reads these before it asks questions. Paths are relative to the folder, with slashes. */
export interface App {
  readonly folder: string
  readonly language: 'TypeScript' | 'JavaScript'
  readonly modules: 'ESM' | 'CommonJS'
  readonly entry: string | null
  readonly authFile: string
  readonly knexfile: Knexfile | null
  /** Without a knexfile: the library of package.json that has a pool already. */
  readonly library: Library | null
  installed(name: string): string | null
}

/** @throws CommandRefusal if the knexfile cannot be used; UsageError if it cannot be loaded, or package.json is not valid JSON */
export async function lookAtApp({ folder, env }: Pick<Surroundings, 'folder' | 'env'>): Promise<App> {
  const manifest = ownManifest(folder)
  const language = existsSync(join(folder, 'tsconfig.json')) ? 'TypeScript' : 'JavaScript'
  const entry = entryOf(folder, manifest)
  const isModule = manifest['type'] === 'module'
  const isMjs = language === 'JavaScript' && !isModule && entry?.endsWith('.mjs') === true
  const ending = language === 'TypeScript' ? 'ts' : isMjs ? 'mjs' : 'js'
  const knexfile = await readKnexfile({ folder, env }, isModule)
  return {
    folder,
    language,
    modules: isModule || isMjs ? 'ESM' : 'CommonJS',
    entry,
    authFile: existsSync(join(folder, 'src')) ? `src/auth.${ending}` : `auth.${ending}`,
    knexfile,
    library: knexfile ? null : libraryOf(manifest),
    installed: (name) => (manifestOf(folder, name)?.['version'] as string | undefined) ?? null, // npm writes a text
  }
}

/** What `npm start` or `npm run dev` runs, or else `main` of package.json, or a usual name. */
function entryOf(folder: string, { scripts, main }: Record<string, unknown>): string | null {
  const { start = '', dev = '' } = Object(scripts) as Record<string, unknown>
  const named = `${start} ${dev} ${main ?? ''}`.split(/\s+/).filter((word) => /\.[cm]?[jt]s$/.test(word))
  const usual = ['src/', ''].flatMap((place) =>
    ['app', 'server', 'index', 'main'].flatMap((name) => ['ts', 'js', 'mjs', 'cjs'].map((ending) => `${place}${name}.${ending}`)),
  )
  return [...named, ...usual].map((path) => posix.normalize(path)).find((path) => existsSync(join(folder, path))) ?? null
}
