import { createHash } from 'node:crypto'
import type { AuthContext } from '../../context'
import { ownSentence, sentenceOf } from '../../core/error-sentence'
import { ConfigurationError, ServiceUnavailableError, ValidationError } from '../../core/errors'
import { type AuthStore, DuplicateRecordError, type NewUser } from '../../store/auth-store'
import { type UserImport, userImportOf } from '../../store/knex/import-users'
import { type ImportRow, type ImportRules, importedFields, type RowRefusal, readImportRow } from './import-row'

export interface ImportOptions {
  /** If true, the import reports its results and inserts nothing. */
  readonly isDryRun: boolean
  /** If true, rows may have an `id`. */
  readonly keepsIds: boolean
}

/** The result of a row. `admin`: the account was imported and is now an administrator. */
export type ImportOutcome = 'imported' | 'admin' | 'skipped' | RowRefusal

/** An import that receives the rows in batches. */
export interface UserImporter {
  /** The field names that a row can contain. */
  readonly fields: readonly string[]
  /** False if the hasher has no function `reads`. Any text then counts as a hash, even a plain password. */
  readonly checksHashes: boolean
  /**
   * Imports a batch, and returns the result of each row, in order. If an account already has the address, the import skips the row and does
   * not change the account. The caller may add the next batch before this batch ends. The import then reads the next batch, and writes it
   * after this batch. If this batch fails, the import does not write the next batch.
   */
  add(rows: readonly ImportRow[]): Promise<ImportOutcome[]>
  /** Emits the event with the number of imported accounts. */
  end(): void
}

/**
 * Starts an import.
 * @throws ConfigurationError if the store cannot write the tables
 * @throws ConfigurationError if `keepsIds` is true and the store is an adapter of the host
 */
export async function importUsers(ctx: AuthContext, hostStore: AuthStore, { isDryRun, keepsIds }: ImportOptions): Promise<UserImporter> {
  await ctx.readiness?.ready()
  const whole = userImportOf(hostStore)
  if (!whole && keepsIds) throw new ConfigurationError('The store is an adapter of your own, which makes the ids itself.')
  return whole ? importerOf(ctx, whole, isDryRun) : importerOf(ctx, oneByOne(ctx), isDryRun)
}

function importerOf<Ready extends Account>(ctx: AuthContext, accounts: UserImport<Ready>, isDryRun: boolean): UserImporter {
  const hostFields = ctx.store.users.hostFields ?? new Map()
  const fields = [...importedFields, ...hostFields.keys()].filter((name) => name !== 'is_admin' || ctx.store.users.fields.has('isAdmin'))
  const wholeFile = isDryRun ? new Set<number>() : null // a real import needs no such set, because the database finds repeated addresses
  const admins = new WeakSet<Ready>()
  const done = { count: 0, admins: 0 }
  let last: Promise<unknown> = Promise.resolve()
  const read = async (rows: readonly ImportRow[]) => {
    const rules = { hasher: ctx.hasher, hostFields, now: ctx.now() }
    return rows.map((row) => readyOf(row, rules, accounts, admins))
  }
  const settle = async (rows: readonly (Ready | RowRefusal)[]) => {
    const addresses = new Set<string>()
    const isFirst = (email: string) => (wholeFile ? isNew(wholeFile, digestOf(email)) : isNew(addresses, email))
    const wanted = rows.filter((row): row is Ready => 'email' in row && isFirst(row.email))
    const outcomes = isDryRun ? await expected(accounts, wanted) : await inserted(accounts, wanted)
    const unfit = rows.filter((row): row is RowRefusal => 'rule' in row && row.rule === 'database')
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

/** The account of a row, in the form that `UserImport` accepts. */
type Account = { readonly email: string }

function readyOf<Ready extends Account>(
  row: ImportRow,
  rules: ImportRules,
  accounts: UserImport<Ready>,
  admins: WeakSet<Ready>,
): Ready | RowRefusal {
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

/** Adds a value to the set, and returns true if the value is new. So if a file contains an address twice, the first row counts. */
function isNew<Value>(seen: Set<Value>, value: Value): boolean {
  const size = seen.size
  return seen.add(value).size > size
}

/** Returns 48 bits of a digest. 48 bits distinguish a million addresses, and need a tenth of the memory of the addresses. */
function digestOf(email: string): number {
  return createHash('sha256').update(email).digest().readUIntBE(0, 6)
}

type Outcomes<Ready> = Map<Ready, ImportOutcome>

async function expected<Ready extends Account>(accounts: UserImport<Ready>, wanted: readonly Ready[]): Promise<Outcomes<Ready>> {
  const taken = wanted.length === 0 ? new Set() : await accounts.taken(wanted.map(({ email }) => email))
  return new Map(wanted.map((one) => [one, taken.has(one.email) ? 'skipped' : 'imported']))
}

/** Inserts a batch. If the database rejects the batch, the function halves the batch until it finds the rejected row. */
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

/**
 * Stops the import if the database rejects every row of a batch. The cause is usually a required column without a value. All later rows
 * would fail for the same reason.
 * @throws ConfigurationError if the database rejects every row
 */
function stopWhereNothingGoesIn(outcomes: readonly ImportOutcome[]): void {
  const [first] = outcomes
  const isStuck = outcomes.length >= 20 && outcomes.every((outcome) => typeof outcome === 'object' && outcome.rule === 'database')
  if (isStuck && typeof first === 'object')
    throw new ConfigurationError(`The database refuses every row. ${first.message}`, { cause: first.cause })
}

async function refusedBy<Ready extends Account>(error: unknown, accounts: UserImport<Ready>, { email }: Ready): Promise<ImportOutcome> {
  if (!(error instanceof DuplicateRecordError)) return refusalBy(error)
  if ((await accounts.taken([email])).has(email)) return 'skipped'
  return { rule: 'duplicate', message: 'Another unique rule of the users table (not of the address) refuses the row.' }
}

/**
 * Returns why the store rejected a row. For an error of a host's adapter or `insertDefaults`, the message contains only the name of the
 * error.
 * @throws the error itself if it is a ConfigurationError
 */
function refusalBy(error: unknown): RowRefusal {
  if (error instanceof ConfigurationError) throw error
  if (!(error instanceof ValidationError)) {
    const message = ownSentence(error) ?? `The store failed with ${sentenceOf(error)}; --verbose shows the whole error.`
    return { rule: 'database', message, cause: error }
  }
  const [path = 'value'] = (error.details as { errors: { path: string }[] }).errors.map(({ path }) => path.replace(/^fields\./, ''))
  return { rule: path, message: 'The column cannot hold this value.' }
}

/** Inserts accounts one by one, because an adapter of the host inserts one row at a time. */
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
