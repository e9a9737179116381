import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { DoctorFinding } from '../router/findings/doctor/check'
import { UsageError } from './terminal'

/** The app's tsx loads TypeScript, or else Node. @throws UsageError if neither can. An error of the module passes through. */
export async function loadModule(path: string, folder: string): Promise<Record<string, unknown>> {
  const url = pathToFileURL(path).href
  if (!/\.[mc]?ts$/.test(path) || (await registerTsx(folder))) return import(url)
  if (!('typescript' in process.features && process.features.typescript))
    throw new UsageError(
      'This auth module is TypeScript. Run `npm install --save-dev tsx`, or use Node 22.18 or later, which reads it by itself.',
    )
  try {
    return await import(url)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    // For example, Node rejects an enum, and `import` in a CommonJS package.
    throw new UsageError('Node does not read this TypeScript by itself. Run `npm install --save-dev tsx`.', { cause: error })
  }
}

/** Null: the folder's modules cannot load the package. */
export async function loadPackage(name: string, folder: string): Promise<Record<string, unknown> | null> {
  const path = resolved(createRequire(join(folder, 'package.json')), name)
  return path === null ? null : import(pathToFileURL(path).href)
}

/** For both module systems, as `node --import tsx` does. False: the app does not have tsx. */
async function registerTsx(folder: string): Promise<boolean> {
  const tsx = resolved(createRequire(join(folder, 'package.json')), 'tsx')
  if (tsx !== null) await import(pathToFileURL(tsx).href)
  return tsx !== null
}

function resolved(require: NodeJS.Require, name: string): string | null {
  try {
    return require.resolve(name)
  } catch {
    return null
  }
}

export function manifestOf(folder: string, name: string): Record<string, unknown> | null {
  const places = createRequire(join(folder, 'package.json')).resolve.paths(name) ?? []
  const path = places.map((place) => join(place, name, 'package.json')).find((candidate) => existsSync(candidate))
  return path === undefined ? null : (JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>) // npm writes an object
}

/** Empty if the file does not exist. @throws UsageError if package.json is not valid JSON */
export function ownManifest(folder: string): Record<string, unknown> {
  const path = join(folder, 'package.json')
  if (!existsSync(path)) return {}
  try {
    return Object(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    throw new UsageError('package.json is no JSON.')
  }
}

export interface FolderResult {
  readonly check: string
  readonly finding?: DoctorFinding | readonly DoctorFinding[]
  readonly skipped?: string
}

/** What the app itself cannot see: its packages, and the files in its folder. */
export function folderChecks(folder: string): FolderResult[] {
  return [peers(folder), trackedEnvFile(folder)]
}

/** npm warns about a wrong version only once, during the installation. */
function peers(folder: string): FolderResult {
  const check = 'peers'
  const own = manifestOf(folder, 'doorward')
  if (!own) return { check, skipped: 'doorward is not installed in this folder.' }
  const wanted = Object.entries((own['peerDependencies'] ?? {}) as Record<string, string>) // npm writes ranges by name
  const found = wanted.flatMap(([name, range]): DoctorFinding[] => {
    const version = manifestOf(folder, name)?.['version']
    if (typeof version !== 'string' || isWithin(version, range)) return []
    return [
      {
        check,
        level: 'error',
        what: `${name} ${version} is installed, and doorward works with ${range}.`,
        why: 'A function that doorward calls may be missing, or may do something else.',
        fix: `npm install ${name}@"${range}"`,
      },
    ]
  })
  return { check, finding: found }
}

/** Reads only the forms of doorward's ranges: `*`, or one or more `^1.2.3` joined by `||`. */
function isWithin(version: string, range: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.+-]/).map(Number)
  return range.split('||').some((part) => {
    const [, one, two, three] = /^\s*\^(\d+)\.(\d+)\.(\d+)\s*$/.exec(part) ?? []
    if (one === undefined) return part.trim() === '*'
    return major === Number(one) && (minor > Number(two) || (minor === Number(two) && patch >= Number(three)))
  })
}

/** A commit could give the secrets to every reader of the repository. */
function trackedEnvFile(folder: string): FolderResult {
  const check = 'env-file-tracked'
  const root = repositoryOf(folder)
  if (root === null || !existsSync(join(folder, '.env'))) return { check, skipped: 'There is no .env in a repository of git.' }
  const ignored = [folder, root].flatMap((place) => linesOf(join(place, '.gitignore')))
  if (ignored.some((line) => /^(\/|\*\*\/)?\.env(\*|\.\*)?$|^\*\.env$/.test(line))) return { check }
  return {
    check,
    finding: {
      check,
      level: 'warning',
      what: '.env is not in .gitignore.',
      why: 'Its secrets become part of the history of the repository, and nobody can remove them from there.',
      fix: 'Write .env into .gitignore. If it was committed already, make new secrets.',
    },
  }
}

function repositoryOf(folder: string): string | null {
  if (existsSync(join(folder, '.git'))) return folder
  const above = dirname(folder)
  return above === folder ? null : repositoryOf(above)
}

function linesOf(path: string): string[] {
  return existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .map((line) => line.trim())
    : []
}
