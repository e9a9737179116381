import { parseArgs } from 'node:util'
import { type CommandAnswer, isOwn, UsageError } from './answer'
import { loadAuth, loadUnchecked } from './auth-module'
import { doctor } from './doctor'
import { readEnvFile } from './env-file'
import { described, wholeOf } from './failure'
import { help, helpFor } from './help'
import { init } from './init/init'
import { keys } from './keys'
import { migrate, requireMigrateVerb } from './migrate'
import { purge } from './purge'
import { newSecret } from './secret'
import type { Surroundings } from './surroundings'
import { users } from './users'

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const options = {
  delivery: text,
  client: text,
  providers: text,
  pages: text,
  'hash-column': text,
  print: flag,
  alg: text,
  step: text,
  auth: text,
  'env-file': text,
  'no-env-file': flag,
  table: text,
  name: text,
  admin: flag,
  verified: flag,
  'password-stdin': flag,
  filter: { type: 'string', multiple: true },
  limit: text,
  cursor: text,
  revoke: flag,
  format: text,
  map: { type: 'string', multiple: true },
  raw: flag,
  'ignore-unknown': flag,
  'allow-admins': flag,
  'keep-ids': flag,
  'dry-run': flag,
  'with-hashes': flag,
  strict: flag,
  verbose: flag,
  passkeys: flag,
  yes: flag,
  json: flag,
  help: flag,
} as const

type Flag = keyof typeof options

const ofModule: readonly Flag[] = ['auth', 'env-file', 'no-env-file', 'verbose']

/** The flags of each command. An entry such as `users list` overrides the entry `users`. All commands accept `--json` and `--help`. */
const known: Readonly<Record<string, readonly Flag[]>> = {
  init: ['delivery', 'client', 'providers', 'pages', 'hash-column', 'print', 'yes', 'env-file', 'no-env-file', 'verbose'],
  secret: [],
  keys: ['alg', 'step', 'env-file', 'no-env-file'],
  purge: ofModule,
  doctor: [...ofModule, 'strict'],
  migrate: ofModule,
  'migrate up': [...ofModule, 'table'],
  users: [...ofModule, 'yes'],
  'users create': [...ofModule, 'name', 'admin', 'verified', 'password-stdin'],
  'users list': [...ofModule, 'filter', 'limit', 'cursor'],
  'users show': ofModule,
  'users import': [...ofModule, 'format', 'map', 'raw', 'ignore-unknown', 'allow-admins', 'keep-ids', 'dry-run'],
  'users export': [...ofModule, 'format', 'filter', 'raw', 'with-hashes'],
  'users admin': [...ofModule, 'revoke', 'yes'],
  'users reset-mfa': [...ofModule, 'passkeys', 'yes'],
}

/**
 * Runs the command.
 * @returns the exit code: 0 success, 1 failure, 2 wrong usage
 */
export async function run(args: readonly string[], surroundings: Surroundings): Promise<0 | 1 | 2> {
  const { out, err } = surroundings
  const [isJson, isVerbose] = [args.includes('--json'), args.includes('--verbose')]
  try {
    const answer = await answerTo(args, surroundings)
    if (answer.note !== undefined) err(`${answer.note}\n`)
    if (isVerbose && 'cause' in answer) err(`${wholeOf(answer.cause)}\n`)
    if (!('isWritten' in answer)) await out(isJson ? `${JSON.stringify(answer.json)}\n` : withLineEnd(answer.text))
    return answer.isNo ? 1 : 0
  } catch (error) {
    const { code, message, exitCode } = described(error)
    if (isJson) out(`${JSON.stringify({ error: { code, message } })}\n`)
    else err(`${message}\n`)
    const cause = isOwn(error) ? error.cause : error // a host does not need our own stack
    if (isVerbose && cause !== undefined) err(`${wholeOf(cause)}\n`)
    return exitCode
  }
}

/** Ends the text with a line break. An empty text stays empty. */
function withLineEnd(text: string): string {
  return text === '' ? '' : `${text}\n`
}

async function answerTo(args: readonly string[], surroundings: Surroundings): Promise<CommandAnswer> {
  const { values, positionals } = parsed(args)
  const [command = '', ...words] = positionals
  if (values.help) return helpFor(command, words[0])
  refuseStrangers(command, words[0] ?? '', values)
  switch (command) {
    case 'init':
      if (words.length > 0) throw new UsageError('doorward init takes no arguments.')
      return init(values, surroundings)
    case 'secret':
      return newSecret(words)
    case 'keys':
      readEnvFile(surroundings, values)
      return keys(words, values, surroundings.env)
    case 'migrate':
      requireMigrateVerb(words)
      return migrate(words, values, await loadUnchecked(surroundings, values))
    case 'users':
      return users(words, values, surroundings)
    case 'doctor':
      if (words.length > 0) throw new UsageError('doorward doctor takes no arguments.')
      return doctor(values, surroundings)
    default:
      if (words.length > 0) throw new UsageError('doorward purge takes no arguments.')
      return purge(await loadAuth(surroundings, values))
  }
}

/**
 * Rejects unknown commands and flags.
 * @throws UsageError for an unknown command or flag
 */
function refuseStrangers(command: string, verb: string, values: object): void {
  const name = [`${command} ${verb}`, command].find((beginning) => Object.hasOwn(known, beginning))
  if (name === undefined) throw new UsageError(help)
  const stranger = Object.keys(values).find((given) => ![...(known[name] ?? []), 'json'].includes(given))
  if (stranger !== undefined) throw new UsageError(`doorward ${name} takes no --${stranger}.`)
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true })
  } catch (error) {
    throw new UsageError((error as Error).message) // parseArgs throws a TypeError
  }
}
