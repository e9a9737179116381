import type { UserBody } from '../admin/operations/operations'
import { type LoadedAuth, loadAuth } from './auth-module'
import { exportUsersCommand } from './export-users'
import { type ImportFlags, importUsersCommand } from './import-users'
import { type CommandAnswer, CommandRefusal, printable, type Surroundings, UsageError } from './terminal'

export interface UserFlags extends ImportFlags {
  readonly name?: string | undefined
  readonly admin?: boolean | undefined
  readonly verified?: boolean | undefined
  readonly 'password-stdin'?: boolean | undefined
  readonly filter?: readonly string[] | undefined
  readonly limit?: string | undefined
  readonly cursor?: string | undefined
  readonly revoke?: boolean | undefined
  readonly passkeys?: boolean | undefined
  readonly 'keep-sessions'?: boolean | undefined
  readonly yes?: boolean | undefined
  readonly json?: boolean | undefined
  readonly 'with-hashes'?: boolean | undefined
}

/** Each change calls the same operation as the admin routes, but no administrator is logged in. */
export async function users([verb, ...words]: readonly string[], flags: UserFlags, surroundings: Surroundings): Promise<CommandAnswer> {
  switch (verb) {
    case 'create':
      return create(one(words, 'users create <email>'), flags, surroundings)
    case 'list':
      if (words.length > 0) throw new UsageError('doorward users list takes no arguments, only --filter, --limit and --cursor.')
      return list(await loadAuth(surroundings, flags), flags)
    case 'show': {
      const who = one(words, 'users show <id or email>')
      return presented(await found(await loadAuth(surroundings, flags), who))
    }
    case 'import':
      return importUsersCommand(one(words, 'users import <file>'), flags, surroundings)
    case 'export':
      if (words.length > 0) throw new UsageError('doorward users export takes no arguments. To write its output into a file, add `> file`.')
      return exported(await loadAuth(surroundings, flags), flags, surroundings)
    default:
      return change(verb ?? '', words, flags, surroundings)
  }
}

function one(words: readonly string[], usage: string): string {
  const [word, ...more] = words
  if (word === undefined || more.length > 0) throw new UsageError(`Write \`doorward ${usage}\`.`)
  return word
}

async function create(email: string, flags: UserFlags, surroundings: Surroundings): Promise<CommandAnswer> {
  const password = await passwordFrom(flags, surroundings)
  const { auth, operations } = await loadAuth(surroundings, flags)
  const { name, admin: isAdmin, verified: isVerified } = flags
  const created = await operations.createUser({ email, name, password, isAdmin, isVerified })
  await auth.drain()
  const { user, set_password_url: url, is_mailed } = created
  const link = url === null ? '' : `\nA password is set at ${url}${is_mailed ? ' (mailed, too)' : ''}`
  return { json: { user, set_password_url: url }, text: `${lineOf(user)}${link}` }
}

/** Null: an account without one. Never an argument, because the process list shows arguments. */
async function passwordFrom(flags: UserFlags, { terminal, stdin }: Surroundings): Promise<string | null> {
  if (flags['password-stdin']) {
    let text = ''
    for await (const chunk of stdin()) text += String(chunk)
    const password = text.replace(/\r?\n$/, '')
    if (password === '') throw new UsageError('--password-stdin: no password came in.')
    return password
  }
  if (!terminal) return null
  const password = await terminal.askUnseen('Password (empty: none, and a link to set one): ')
  if (password === '') return null
  if ((await terminal.askUnseen('Once more: ')) !== password) throw new CommandRefusal('PASSWORDS_DIFFER', 'The two passwords differ.')
  return password
}

async function list({ operations }: LoadedAuth, { filter = [], limit, cursor }: UserFlags): Promise<CommandAnswer> {
  const filters = Object.fromEntries(filter.map(pairOf))
  const page = await operations.listUsers({ filters, cursor, ...(limit !== undefined && { limit: Number(limit) }) })
  const lines = page.items.map(lineOf).join('\n')
  return {
    json: page,
    text: lines,
    ...(page.next_cursor !== null && { note: `There are more: --cursor ${printable(page.next_cursor)}` }),
  }
}

function exported({ operations }: LoadedAuth, flags: UserFlags, surroundings: Surroundings): Promise<CommandAnswer> {
  const { filter = [], format, json: isJson = false, raw: isRaw = false, 'with-hashes': withHashes = false } = flags
  const accounts = operations.exportUsers({ filters: Object.fromEntries(filter.map(pairOf)), withHashes })
  return exportUsersCommand(accounts, { format, isJson, isRaw }, surroundings)
}

function pairOf(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw new UsageError('Write --filter as key=value, for example --filter is_active=true.')
  return [text.slice(0, at), text.slice(at + 1)]
}

function lineOf(user: UserBody): string {
  return `${printable(user.id)}  ${printable(user.email)}`
}

function presented(user: UserBody): CommandAnswer {
  const rows = Object.entries(user).map(([key, value]) => `${key}  ${printable(typeof value === 'object' ? JSON.stringify(value) : value)}`)
  return { json: user, text: rows.join('\n') }
}

async function found({ operations }: LoadedAuth, who: string): Promise<UserBody> {
  const user = await operations.findUser(who)
  if (user) return user
  throw new CommandRefusal('NO_SUCH_USER', 'There is no such account.')
}

interface Change {
  /** Null: the change removes nothing and needs no question. */
  readonly asks: string | null
  /** The answer is the account as it was. */
  readonly deletes?: true
  readonly apply: (auth: LoadedAuth['auth'], id: string) => Promise<unknown>
}

const changes: Readonly<Record<string, Change>> = {
  admin: { asks: null, apply: (auth, id) => auth.service.updateUser(id, { isAdmin: true }) },
  'admin --revoke': { asks: 'Revoke the administrator', apply: (auth, id) => auth.service.updateUser(id, { isAdmin: false }) },
  deactivate: { asks: 'Deactivate', apply: (auth, id) => auth.service.deactivate(id) },
  activate: { asks: null, apply: (auth, id) => auth.service.activateUser(id) },
  'reset-mfa': { asks: 'Remove the second factor of', apply: (auth, id) => auth.service.resetMfa(id) },
  'reset-mfa --passkeys': {
    asks: 'Remove the second factor and every passkey of',
    apply: (auth, id) => auth.service.resetMfa(id, undefined, { passkeys: true }),
  },
  'expire-password': { asks: 'Expire the password and revoke all sessions of', apply: (auth, id) => auth.service.expirePassword(id) },
  'expire-password --keep-sessions': {
    asks: 'Expire the password of',
    apply: (auth, id) => auth.service.expirePassword(id, { keepSessions: true }),
  },
  approve: { asks: null, apply: (auth, id) => auth.service.approve(id) },
  decline: { asks: 'Decline', apply: (auth, id) => auth.service.decline(id) },
  delete: { asks: 'Delete for ever', deletes: true, apply: (auth, id) => auth.service.deleteUser(id) },
  'revoke-sessions': { asks: 'Revoke all sessions of', apply: (auth, id) => auth.service.revokeSessions(id) },
}

async function change(verb: string, words: readonly string[], flags: UserFlags, surroundings: Surroundings): Promise<CommandAnswer> {
  const name = [
    verb,
    ...(flags.revoke ? ['--revoke'] : []),
    ...(flags.passkeys ? ['--passkeys'] : []),
    ...(flags['keep-sessions'] ? ['--keep-sessions'] : []),
  ].join(' ')
  const wanted = Object.hasOwn(changes, name) ? changes[name] : undefined
  if (!wanted)
    throw new UsageError(
      'Write `doorward users create|list|show|admin|deactivate|activate|approve|decline|reset-mfa|expire-password|revoke-sessions|delete|import|export`.',
    )
  const who = one(words, `users ${name} <id or email>`)
  const isAsked = wanted.asks !== null && !flags.yes
  if (isAsked && !surroundings.terminal) throw new UsageError(`doorward users ${name} asks first; without a terminal add --yes.`)
  const loaded = await loadAuth(surroundings, flags)
  const before = await found(loaded, who)
  const { id, email } = before
  if (isAsked && !/^y(es)?$/i.test((await surroundings.terminal?.ask(`${wanted.asks} ${printable(email)}? (y/N) `)) ?? ''))
    throw new CommandRefusal('NOT_CONFIRMED', 'Nothing was changed.')
  await wanted.apply(loaded.auth, id)
  await loaded.auth.drain()
  return presented(wanted.deletes ? before : await found(loaded, id))
}
