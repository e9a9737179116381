import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import type { Operations } from '../admin/operations/operations'
import { type LoadOperations, OPERATIONS } from '../admin/operations/operations-key'
import type { AuthRouter } from '../router/create-auth-router'
import { UNCHECKED } from '../router/findings/readiness/readiness'
import { told } from './failure'
import { loadModule, ownManifest } from './load-module'
import { CommandRefusal, type Surroundings, UsageError } from './terminal'

export interface AuthModuleFlags extends EnvFileFlags {
  readonly auth?: string | undefined
  readonly verbose?: boolean | undefined
}

export interface LoadedAuth {
  readonly auth: AuthRouter
  readonly operations: Operations
  /** The module's export `app`, if the module has one. */
  readonly app: unknown
}

const places = ['auth', 'src/auth', 'lib/auth', 'server/auth']
const endings = ['ts', 'mts', 'cts', 'js', 'mjs', 'cjs']

/** Also reads the app's `.env`. @throws UsageError if there is no such module; CommandRefusal `BOOT` if the module throws */
export async function loadAuth(surroundings: Surroundings, flags: AuthModuleFlags): Promise<LoadedAuth> {
  readEnvFile(surroundings, flags)
  const path = findModule(surroundings.folder, flags.auth)
  const { auth, app } = await routerIn(path, surroundings.folder)
  const operations = Object(auth)[OPERATIONS] as LoadOperations | undefined // set by createAuthRouter
  if (operations) return { auth: auth as AuthRouter, operations: await operations(), app } // only a router has operations
  throw new UsageError(
    `${path} exports no router of this version of doorward: export it as \`auth\`, by default, or from a function that returns it.`,
  )
}

/** The router does not check its tables. */
export async function loadUnchecked(surroundings: Surroundings, flags: AuthModuleFlags): Promise<LoadedAuth> {
  Reflect.set(globalThis, UNCHECKED, true)
  try {
    return await loadAuth(surroundings, flags)
  } finally {
    Reflect.deleteProperty(globalThis, UNCHECKED)
  }
}

async function routerIn(path: string, folder: string): Promise<{ auth: unknown; app: unknown }> {
  try {
    const module = await loadModule(path, folder)
    const exported = routerOf(module)
    return { auth: await (isMaker(exported) ? exported() : exported), app: module['app'] ?? Object(module['default']).app }
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new CommandRefusal('BOOT', told(error), { cause: error })
  }
}

/** `import` gives the exports of a CommonJS module as the default export. These can again have a member `default`. */
function routerOf(module: Record<string, unknown>): unknown {
  const inner = Object(module['default']) as Record<string, unknown>
  return module['auth'] ?? inner['auth'] ?? inner['default'] ?? module['default']
}

/** The router is a function too, but has members that a function which makes it lacks. */
function isMaker(exported: unknown): exported is () => unknown {
  return typeof exported === 'function' && !(OPERATIONS in exported) && !('handle' in exported)
}

export function authModuleIn(folder: string, named = namedInPackage(folder)): string | null {
  const candidates = named === undefined ? places.flatMap((place) => endings.map((ending) => `${place}.${ending}`)) : [named]
  return candidates.find((candidate) => isFile(resolve(folder, candidate))) ?? null
}

function findModule(folder: string, flag: string | undefined): string {
  const named = flag ?? namedInPackage(folder)
  const found = authModuleIn(folder, named)
  if (found !== null) return resolve(folder, found)
  const looked = named ?? places.map((place) => `${place}.{${endings.join(',')}}`).join(', ')
  throw new UsageError(
    `No auth module was found. Looked at: ${looked}. Run \`doorward init\`, or name the file that makes the router by --auth, or as "doorward": { "auth": "…" } in package.json.`,
  )
}

export function namedInPackage(folder: string): string | undefined {
  const { auth } = Object(ownManifest(folder)['doorward']) as { auth?: unknown }
  return typeof auth === 'string' ? auth : undefined
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}

export interface EnvFileFlags {
  readonly 'env-file'?: string | undefined
  readonly 'no-env-file'?: boolean | undefined
}

/** A variable that is already set keeps its value. @throws UsageError if the named file cannot be read */
export function readEnvFile({ env, folder }: Surroundings, flags: EnvFileFlags): void {
  if (flags['no-env-file']) return
  const text = textOf(resolve(folder, flags['env-file'] ?? '.env'), flags['env-file'])
  for (const [name, value] of Object.entries(parseEnv(text))) env[name] ??= value
}

function textOf(path: string, named: string | undefined): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    if (named === undefined) return ''
    throw new UsageError(`--env-file ${named} cannot be read.`)
  }
}
