import { existsSync } from 'node:fs'
import { dirname, isAbsolute, join, posix, relative } from 'node:path'
import type { Knex } from 'knex'
import { CommandRefusal, UsageError } from '../answer'
import { told } from '../failure'
import { loadModule } from '../load-module'
import type { Surroundings } from '../surroundings'
import { type Client, providerClientOf } from './clients'

/** The app's knexfile, as `knex` uses the file in this environment. */
export interface Knexfile {
  /** The path, relative to the folder of the app. `migrations` is also relative. */
  readonly path: string
  /**
   * The place of the configuration. `flat`: the export itself. `by environment`: a member with the name of the environment. Null: another
   * place.
   */
  readonly shape: 'flat' | 'by environment' | null
  readonly isModule: boolean
  readonly config: Knex.Config
  readonly client: Client
  /** The SQLite file, relative if the file is inside the folder. Null for another database, or for a database in memory. */
  readonly sqliteFile: string | null
  /** The directory in which knex writes new migrations. */
  readonly migrations: string
}

type Place = Pick<Surroundings, 'folder' | 'env'>

const places = ['', 'src/'].flatMap((place) => ['js', 'ts', 'cjs', 'mjs', 'cts', 'mts'].map((ending) => `${place}knexfile.${ending}`))

/**
 * Reads the knexfile in the folder or in `src`. Returns null if there is no knexfile.
 * @throws CommandRefusal if the knexfile throws, or names an unsupported database
 * @throws UsageError if the knexfile is TypeScript, tsx is missing, and Node cannot load the file
 */
export async function readKnexfile({ folder, env }: Place, isPackageOfModules: boolean): Promise<Knexfile | null> {
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

/**
 * Returns the value that knex reads from the module. If `isPlain` is true, the value is the default export, and `import` and `require`
 * return the same value.
 */
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
