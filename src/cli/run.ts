import { parseArgs } from 'node:util'
import { loadAuth, loadUnchecked, readEnvFile } from './auth-module'
import { doctor } from './doctor'
import { described, wholeOf } from './failure'
import { init } from './init/init'
import { keys } from './keys'
import { migrate, purge, requireMigrateVerb } from './migrate'
import { type CommandAnswer, isOwn, newSecret, type Surroundings, UsageError } from './terminal'
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
  'keep-sessions': flag,
  yes: flag,
  json: flag,
  help: flag,
} as const

type Flag = keyof typeof options

const ofModule: readonly Flag[] = ['auth', 'env-file', 'no-env-file', 'verbose']

/** `users list` overrides the entry `users`. All commands accept `--json` and `--help`. */
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
  'users expire-password': [...ofModule, 'keep-sessions', 'yes'],
}

/** @returns the exit code: 0 success, 1 failure, 2 wrong usage */
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

/** @throws UsageError for an unknown command or flag */
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

export const help = `Usage: doorward <command>

  init              writes the auth module of an app and the other files that it needs (--delivery --client --providers --pages --hash-column --print)
  doctor            checks the app and says what is wrong, why it matters and how to fix it (--strict)
  secret            prints a secret for AUTH_JWT_SECRET
  secret mfa        prints a key for AUTH_MFA_SECRET_KEY
  keys new          prints a signing key, an entry of AUTH_JWT_KEYS (--alg ES256, RS256 or PS256)
  keys list         lists the keys of AUTH_JWT_KEYS, without their private parts
  keys rotate       prints the next value of AUTH_JWT_KEYS (--step publish, sign or retire)
  migrate status    shows which versions of the tables exist
  migrate up        makes the missing tables, columns and indexes (--table: the table of the record, default auth_migrations)
  migrate sql       prints the SQL that migrate up would run
  users create      creates an account (<email> --name --admin --verified --password-stdin)
  users list        lists accounts (--filter key=value --limit --cursor)
  users show        shows an account (<id or email>, as below)
  users admin       makes an account an administrator (--revoke: ends that)
  users deactivate  deactivates an account and revokes its sessions
  users activate    activates an account
  users reset-mfa   removes the second factor (--passkeys: also every passkey)
  users expire-password  makes the next login set a new password, and revokes all sessions (--keep-sessions: they stay)
  users approve, users decline  let an account in that waits for it (signupMode approve), or not
  users revoke-sessions  revokes all sessions of an account
  users delete      deletes an account at once, with its rows
  users import      creates accounts from a file (<file> or -, --format --map --dry-run --ignore-unknown --keep-ids --allow-admins --raw)
  users export      prints accounts (--format csv or jsonl, --filter --with-hashes --raw)
  purge             deletes expired rows

  --auth <file>     the module that exports the router
  --env-file <file> read instead of .env (--no-env-file: no file is read)
  --yes             does not ask (init: uses the defaults)
  --json            prints one JSON document
  --verbose         shows errors in full, which may contain personal data (doctor: also lists the skipped checks)
  --help            prints this help`

/** An example works in an app that has the named accounts and files. */
export const examples: Readonly<Record<string, readonly string[]>> = {
  init: [
    'doorward init --yes',
    'doorward init --delivery cookie --client pg --providers google,github --pages no',
    'doorward init --yes --print',
  ],
  doctor: ['doorward doctor', 'doorward doctor --strict --json'],
  secret: ['doorward secret', 'doorward secret mfa'],
  keys: ['doorward keys new --alg ES256', 'doorward keys list', 'doorward keys rotate --step publish'],
  migrate: ['doorward migrate status', 'doorward migrate up', 'doorward migrate sql > tables.sql'],
  users: [
    'doorward users create ada@example.com --admin --verified',
    'doorward users list --filter is_active=false --limit 100',
    'doorward users show ada@example.com',
    'doorward users admin ada@example.com --revoke --yes',
    'doorward users deactivate ada@example.com',
    'doorward users import people.csv --map email=Mail,password_hash=encrypted_password --dry-run',
    'doorward users export --format csv > people.csv',
  ],
  purge: ['doorward purge', 'doorward purge --json --env-file production.env'],
}

/** @throws UsageError for an unknown command */
function helpFor(command: string, verb: string | undefined): CommandAnswer {
  if (command === '') return { json: { help }, text: help }
  const name = [command, verb].filter(Boolean).join(' ')
  const [head = '', flags = ''] = help.split('\n\n').slice(1)
  const lines = head.split('\n').filter((line) => new RegExp(`^  ${escaped(name)}( |$)`).test(line))
  if (lines.length === 0) throw new UsageError(help)
  const presented = (examples[command] ?? []).filter((example) => `${example} `.startsWith(`doorward ${name} `))
  const text = [
    'Usage:',
    lines.join('\n'),
    '',
    flags,
    ...(presented.length > 0 ? ['', 'Examples:', ...presented.map((line) => `  ${line}`)] : []),
  ].join('\n')
  return { json: { help: text, examples: presented }, text }
}

function escaped(words: string): string {
  return words.replace(/[^\w -]/g, '\\$&')
}
