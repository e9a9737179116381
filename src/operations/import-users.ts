import { createHash } from 'node:crypto'
import type { AuthContext } from '../context'
import { ownSentence, sentenceOf } from '../error-sentence'
import { ConfigurationError, ServiceUnavailableError, ValidationError } from '../errors'
import { type AuthStore, DuplicateRecordError, type NewUser } from '../store/auth-store'
import { type UserImport, userImportOf } from '../store/knex/import-users'
import { type ImportRow, type ImportRules, importedFields, type Refusal, readImportRow } from './import-row'

export interface ImportOptions {
  /** Says what would be done, and inserts nothing. */
  readonly isDryRun: boolean
  /** Rows may have an `id`. */
  readonly keepsIds: boolean
}

/** `admin`: imported, and an administrator from now on. */
export type ImportOutcome = 'imported' | 'admin' | 'skipped' | Refusal

/** One import, which takes rows batch by batch. */
export interface UserImporter {
  /** The names that a row may have. */
  readonly fields: readonly string[]
  /** False: the hasher has no `reads`, so any text counts as a hash, also a plain password. */
  readonly checksHashes: boolean
  /**
   * What became of each row, in their order. An address that an account has is left as it is, and skipped. The next batch may be given
   * before: its rows are read at once, but reach the database only after all of this one, and never where this one failed.
   */
  add(rows: readonly ImportRow[]): Promise<ImportOutcome[]>
  /** Tells the observers how many were imported. */
  end(): void
}

/** @throws ConfigurationError while the tables cannot be written */
export async function importUsers(ctx: AuthContext, hostStore: AuthStore, { isDryRun, keepsIds }: ImportOptions): Promise<UserImporter> {
  await ctx.readiness?.ready()
  const whole = userImportOf(hostStore)
  if (!whole && keepsIds) throw new ConfigurationError('The store is an adapter of your own, which makes the ids itself.')
  return whole ? importerOf(ctx, whole, isDryRun) : importerOf(ctx, oneByOne(ctx), isDryRun)
}

function importerOf<Ready extends Account>(ctx: AuthContext, accounts: UserImport<Ready>, isDryRun: boolean): UserImporter {
  const hostFields = ctx.store.users.hostFields ?? new Map()
  const fields = [...importedFields, ...hostFields.keys()].filter((name) => name !== 'is_admin' || ctx.store.users.fields.has('isAdmin'))
  const wholeFile = isDryRun ? new Set<number>() : null // else the database tells it
  const admins = new WeakSet<Ready>()
  const done = { count: 0, admins: 0 }
  let last: Promise<unknown> = Promise.resolve()
  const read = async (rows: readonly ImportRow[]) => {
    const rules = { hasher: ctx.hasher, hostFields, now: ctx.now() }
    return rows.map((row) => readyOf(row, rules, accounts, admins))
  }
  const settle = async (rows: readonly (Ready | Refusal)[]) => {
    const addresses = new Set<string>()
    const isFirst = (email: string) => (wholeFile ? isNew(wholeFile, digestOf(email)) : isNew(addresses, email))
    const wanted = rows.filter((row): row is Ready => 'email' in row && isFirst(row.email))
    const outcomes = isDryRun ? await expected(accounts, wanted) : await inserted(accounts, wanted)
    const unfit = rows.filter((row): row is Refusal => 'rule' in row && row.rule === 'database')
    stopWhereNothingGoesIn([...outcomes.values(), ...unfit])
    return rows.map((row): ImportOutcome => {
      if ('rule' in row) return row
      if (outcomes.get(row) !== 'imported') return outcomes.get(row) ?? 'skipped'
      done.count += 1
      if (!admins.has(row)) return 'imported'
      done.admins += 1
      return 'admin'
    })
  }
  return {
    fields,
    checksHashes: ctx.hasher.reads !== undefined,
    add(rows) {
      const outcomes = Promise.all([read(rows), last]).then(([read]) => settle(read))
      last = outcomes
      return outcomes
    },
    end() {
      if (!isDryRun && done.count > 0) ctx.events.emit('users.imported', done)
    },
  }
}

/** What a row becomes, as `UserImport` has it. */
type Account = { readonly email: string }

function readyOf<Ready extends Account>(
  row: ImportRow,
  rules: ImportRules,
  accounts: UserImport<Ready>,
  admins: WeakSet<Ready>,
): Ready | Refusal {
  const read = readImportRow(row, rules)
  if ('rule' in read) return read
  try {
    const ready = accounts.ready(read)
    if (read.user.isAdmin) admins.add(ready)
    return ready
  } catch (error) {
    return refusalBy(error)
  }
}

/** In a file twice: the first counts. */
function isNew<Value>(seen: Set<Value>, value: Value): boolean {
  const size = seen.size
  return seen.add(value).size > size
}

/** 48 bits of a digest tell a million addresses apart, and take a tenth of the room that the addresses would. */
function digestOf(email: string): number {
  return createHash('sha256').update(email).digest().readUIntBE(0, 6)
}

type Outcomes<Ready> = Map<Ready, ImportOutcome>

async function expected<Ready extends Account>(accounts: UserImport<Ready>, wanted: readonly Ready[]): Promise<Outcomes<Ready>> {
  const taken = wanted.length === 0 ? new Set() : await accounts.taken(wanted.map(({ email }) => email))
  return new Map(wanted.map((one) => [one, taken.has(one.email) ? 'skipped' : 'imported']))
}

/** A batch that the database refuses is halved until the row is found that it refuses. */
async function inserted<Ready extends Account>(accounts: UserImport<Ready>, wanted: readonly Ready[]): Promise<Outcomes<Ready>> {
  if (wanted.length === 0) return new Map()
  try {
    const emails = await accounts.insertMissing(wanted)
    return new Map(wanted.map((one) => [one, emails.has(one.email) ? 'imported' : 'skipped']))
  } catch (error) {
    if (error instanceof ServiceUnavailableError || error instanceof ConfigurationError) throw error
    const [only] = wanted
    if (wanted.length === 1 && only) return new Map([[only, await refusedBy(error, accounts, only)]])
    const middle = Math.ceil(wanted.length / 2)
    const [left, right] = [await inserted(accounts, wanted.slice(0, middle)), await inserted(accounts, wanted.slice(middle))]
    return new Map([...left, ...right])
  }
}

/** A column that nobody fills refuses every row, and would refuse a million. @throws ConfigurationError */
function stopWhereNothingGoesIn(outcomes: readonly ImportOutcome[]): void {
  const [first] = outcomes
  const isStuck = outcomes.length >= 20 && outcomes.every((outcome) => typeof outcome === 'object' && outcome.rule === 'database')
  if (isStuck && typeof first === 'object')
    throw new ConfigurationError(`The database refuses every row. ${first.message}`, { cause: first.cause })
}

async function refusedBy<Ready extends Account>(error: unknown, accounts: UserImport<Ready>, { email }: Ready): Promise<ImportOutcome> {
  if (!(error instanceof DuplicateRecordError)) return refusalBy(error)
  if ((await accounts.taken([email])).has(email)) return 'skipped'
  return { rule: 'duplicate', message: 'A unique rule of the users table, other than that of the address, refuses the row.' }
}

/** Returns the refusal of a row. An error of a host's adapter or of its insertDefaults is only named. @throws ConfigurationError as it is */
function refusalBy(error: unknown): Refusal {
  if (error instanceof ConfigurationError) throw error
  if (!(error instanceof ValidationError)) {
    const message = ownSentence(error) ?? `The store failed with ${sentenceOf(error)}; --verbose shows the whole error.`
    return { rule: 'database', message, cause: error }
  }
  const [path = 'value'] = (error.details as { errors: { path: string }[] }).errors.map(({ path }) => path.replace(/^fields\./, ''))
  return { rule: path, message: 'The column cannot hold this value.' }
}

/** An adapter of the host's has a verb for one row. */
function oneByOne({ store }: AuthContext): UserImport<NewUser> {
  const taken = async (emails: readonly string[], { users }: AuthStore = store) => {
    const found = new Set<string>()
    for (const email of emails) if (await users.findByEmail(email)) found.add(email)
    return found
  }
  return {
    ready: ({ user }) => user,
    taken: (emails) => taken(emails),
    insertMissing: (users) =>
      store.transaction(async (inside) => {
        const emails = users.map(({ email }) => email)
        const known = await taken(emails, inside)
        for (const user of users) if (!known.has(user.email)) await inside.users.insert(user, { by: 'command' })
        return new Set(emails.filter((email) => !known.has(email)))
      }),
  }
}
