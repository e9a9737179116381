import { createHash } from 'node:crypto'
import type { AuthContext } from '../context'
import { ConfigurationError, ServiceUnavailableError, ValidationError } from '../errors'
import { type AuthStore, DuplicateRecordError } from '../store/auth-store'
import { type ImportedUser, type UserImport, userImportOf } from '../store/knex/import-users'
import { type ImportRow, importedFields, type Refusal, readImportRow } from './import-row'

export interface ImportOptions {
  /** Says what would be done, and inserts nothing. */
  readonly isDryRun: boolean
  /** Rows may have an `id`. */
  readonly keepsIds: boolean
}

export type ImportOutcome = 'imported' | 'skipped' | Refusal

/** One import, which takes rows batch by batch. */
export interface UserImporter {
  /** The names that a row may have. */
  readonly fields: readonly string[]
  /** What became of each row, in their order. An address that an account has is left as it is, and skipped. */
  add(rows: readonly ImportRow[]): Promise<ImportOutcome[]>
  /** Tells the observers how many were imported. */
  end(): void
}

/** @throws ConfigurationError while the tables cannot be written */
export async function importUsers(ctx: AuthContext, hostStore: AuthStore, { isDryRun, keepsIds }: ImportOptions): Promise<UserImporter> {
  await ctx.readiness?.ready()
  const whole = userImportOf(hostStore)
  if (!whole && keepsIds) throw new ConfigurationError('The store is an adapter of your own, which makes the ids itself.')
  const accounts = whole ?? oneByOne(ctx)
  const hostFields = ctx.store.users.hostFields ?? new Map()
  const fields = [...importedFields, ...hostFields.keys()].filter((name) => name !== 'is_admin' || ctx.store.users.fields.has('isAdmin'))
  const wholeFile = isDryRun ? seenAddresses() : null // else the database tells it
  let imported = 0
  return {
    fields,
    async add(rows) {
      const now = ctx.now()
      const read = rows.map((row) => readImportRow(row, { hasher: ctx.hasher, hostFields, now }))
      const seen = wholeFile ?? seenAddresses()
      const first = read.map((one) => 'user' in one && seen.isFirst(one.user.email))
      const wanted = read.flatMap((one, place) => ('user' in one && first[place] ? [one] : []))
      const outcomes = isDryRun ? await expected(accounts, wanted) : await inserted(accounts, wanted)
      stopWhereNothingGoesIn(outcomes)
      imported += [...outcomes.values()].filter((outcome) => outcome === 'imported').length
      return read.map((one, place) => ('user' in one ? (first[place] && outcomes.get(one)) || 'skipped' : one))
    },
    end() {
      if (!isDryRun && imported > 0) ctx.events.emit('users.imported', { count: imported })
    },
  }
}

/**
 * In a file twice: the first counts. 48 bits of a digest tell a million addresses apart, and take a tenth of the room that the
 * addresses would.
 */
function seenAddresses() {
  const seen = new Set<number>()
  return {
    isFirst(email: string): boolean {
      const digest = createHash('sha256').update(email).digest().readUIntBE(0, 6)
      const size = seen.size
      return seen.add(digest).size > size
    },
  }
}

type Outcomes = Map<ImportedUser, ImportOutcome>

async function expected(accounts: UserImport, wanted: readonly ImportedUser[]): Promise<Outcomes> {
  const taken = wanted.length === 0 ? new Set() : await accounts.taken(wanted.map(({ user }) => user.email))
  return new Map(wanted.map((one) => [one, taken.has(one.user.email) ? 'skipped' : 'imported']))
}

/** A batch that the database refuses is halved until the row is found that it refuses. */
async function inserted(accounts: UserImport, wanted: readonly ImportedUser[]): Promise<Outcomes> {
  if (wanted.length === 0) return new Map()
  try {
    const emails = await accounts.insertMissing(wanted)
    return new Map(wanted.map((one) => [one, emails.has(one.user.email) ? 'imported' : 'skipped']))
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
function stopWhereNothingGoesIn(outcomes: Outcomes): void {
  const all = [...outcomes.values()]
  const [first] = all
  const isStuck = all.length >= 20 && all.every((outcome) => typeof outcome === 'object' && outcome.rule === 'database')
  if (isStuck && typeof first === 'object') throw new ConfigurationError(`The database refuses every row. ${first.message}`)
}

/** Of an error of the database only our own sentence about it is passed on. */
async function refusedBy(error: unknown, accounts: UserImport, { user }: ImportedUser): Promise<ImportOutcome> {
  if (error instanceof ValidationError) {
    const [path = 'value'] = (error.details as { errors: { path: string }[] }).errors.map(({ path }) => path.replace(/^fields\./, ''))
    return { rule: path, message: 'The column cannot hold this value.' }
  }
  if (!(error instanceof DuplicateRecordError)) return { rule: 'database', message: error instanceof Error ? error.message : String(error) }
  if ((await accounts.taken([user.email])).has(user.email)) return 'skipped'
  return { rule: 'duplicate', message: 'A unique rule of the users table, other than that of the address, refuses the row.' }
}

/** An adapter of the host's has a verb for one row. */
function oneByOne({ store }: AuthContext): UserImport {
  const taken = async (emails: readonly string[], { users }: AuthStore = store) => {
    const found = new Set<string>()
    for (const email of emails) if (await users.findByEmail(email)) found.add(email)
    return found
  }
  return {
    taken: (emails) => taken(emails),
    insertMissing: (imported) =>
      store.transaction(async (inside) => {
        const emails = imported.map(({ user }) => user.email)
        const known = await taken(emails, inside)
        for (const { user } of imported) if (!known.has(user.email)) await inside.users.insert(user, { by: 'command' })
        return new Set(emails.filter((email) => !known.has(email)))
      }),
  }
}
