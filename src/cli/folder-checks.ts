import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { DoctorFinding } from '../router/findings/doctor/check'
import { manifestOf } from './installed'

/** The result of one check of the app's folder. */
export interface FolderResult {
  readonly check: string
  readonly finding?: DoctorFinding | readonly DoctorFinding[]
  readonly skipped?: string
}

/** Checks what the app itself cannot see: its packages, and the files in its folder. */
export function folderChecks(folder: string): FolderResult[] {
  return [peers(folder), trackedEnvFile(folder)]
}

/** Checks the versions of the peer dependencies, because npm warns about a wrong version only once, during the installation. */
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

/** Returns true if the version is in the range. Reads only the forms of doorward's ranges: `*`, or one or more `^1.2.3` joined by `||`. */
function isWithin(version: string, range: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.+-]/).map(Number)
  return range.split('||').some((part) => {
    const [, one, two, three] = /^\s*\^(\d+)\.(\d+)\.(\d+)\s*$/.exec(part) ?? []
    if (one === undefined) return part.trim() === '*'
    return major === Number(one) && (minor > Number(two) || (minor === Number(two) && patch >= Number(three)))
  })
}

/** Warns if .gitignore does not contain `.env`. A commit could then give the secrets to every reader of the repository. */
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
