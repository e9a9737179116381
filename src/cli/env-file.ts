import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { UsageError } from './answer'
import type { Surroundings } from './surroundings'

export interface EnvFileFlags {
  readonly 'env-file'?: string | undefined
  readonly 'no-env-file'?: boolean | undefined
}

/**
 * Reads the folder's `.env`, or the named file. A variable that is already set keeps its value.
 * @throws UsageError if the named file cannot be read
 */
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
