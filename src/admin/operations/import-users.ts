import { createHash } from 'node:crypto'
import type { AuthContext } from '../../context'
import { ownSentence, sentenceOf } from '../../core/error-sentence'
import { ConfigurationError, ServiceUnavailableError, ValidationError } from '../../core/errors'
import { normalizeEmail } from '../../http/email-address'
import type { PasswordHasher } from '../../passwords/password-types'
import { unusablePassword } from '../../passwords/verify-password'
import { type AuthStore, DuplicateRecordError, type HostFieldRules, type NewUser } from '../../store/auth-store'
import { type ImportedUser, type UserImport, userImportOf } from '../../store/knex/import-users'
import { newUser } from '../../store/user-records'

export interface ImportOptions {
  readonly isDryRun: boolean
  readonly keepsIds: boolean
}

/** `admin`: the account was imported and is now an administrator. */
export type ImportOutcome = 'imported' | 'admin' | 'skipped' | RowRefusal

export interface UserImporter {
  readonly fields: readonly string[]
  /** False: the hasher has no function `reads`. Any text then counts as a hash, even a plain password. */
  readonly checksHashes: boolean
  /** Skips a taken address. A batch that is added before this one ends is read, but not written if this one fails. */
  add(rows: readonly ImportRow[]): Promise<ImportOutcome[]>
  end(): void
}

/** @throws ConfigurationError if the store cannot write the tables, or has an adapter of the host and `keepsIds` is true */
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

/** If a file contains an address twice, the first row counts. */
function isNew<Value>(seen: Set<Value>, value: Value): boolean {
  const size = seen.size
  return seen.add(value).size > size
}

/** 48 bits distinguish a million addresses, and need a tenth of the memory of the addresses. */
function digestOf(email: string): number {
  return createHash('sha256').update(email).digest().readUIntBE(0, 6)
}

type Outcomes<Ready> = Map<Ready, ImportOutcome>

async function expected<Ready extends Account>(accounts: UserImport<Ready>, wanted: readonly Ready[]): Promise<Outcomes<Ready>> {
  const taken = wanted.length === 0 ? new Set() : await accounts.taken(wanted.map(({ email }) => email))
  return new Map(wanted.map((one) => [one, taken.has(one.email) ? 'skipped' : 'imported']))
}

/** If the database rejects the batch, halves it until it finds the rejected row. */
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

/** Usually a required column has no value, and later rows would fail too. @throws ConfigurationError if every row is rejected */
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

/** For an error of a host's adapter or `insertDefaults`, tells only the name of the error. @throws a ConfigurationError itself */
function refusalBy(error: unknown): RowRefusal {
  if (error instanceof ConfigurationError) throw error
  if (!(error instanceof ValidationError)) {
    const message = ownSentence(error) ?? `The store failed with ${sentenceOf(error)}; --verbose shows the whole error.`
    return { rule: 'database', message, cause: error }
  }
  const [path = 'value'] = (error.details as { errors: { path: string }[] }).errors.map(({ path }) => path.replace(/^fields\./, ''))
  return { rule: path, message: 'The column cannot hold this value.' }
}

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

/** Null and a missing name mean that the row has no value. */
type ImportRow = Readonly<Record<string, unknown>>

/** `rule` and `message` contain no value of the row. */
interface RowRefusal {
  readonly rule: string
  readonly message: string
  /** The text of this error may contain values of the row. */
  readonly cause?: unknown
}

interface ImportRules {
  readonly hasher: PasswordHasher
  readonly hostFields: ReadonlyMap<string, HostFieldRules>
  readonly now: Date
}

/** Without the names of the host's own fields. */
const importedFields = ['email', 'password_hash', 'name', 'is_active', 'email_verified', 'created_at', 'id', 'is_admin'] as const

function readImportRow(row: ImportRow, rules: ImportRules): ImportedUser | RowRefusal {
  const email = normalizeEmail(row['email'])
  if (email === null) return refusal('email', 'The address is missing, or is not an email address of at most 320 characters.')
  const { name = null, password_hash: hash = null, id = null } = row
  if (name !== null && (typeof name !== 'string' || name.length > 120)) return refusal('name', 'A name has at most 120 characters.')
  if (id !== null && !/^[^\s].{0,254}$/.test(textOf(id))) return refusal('id', 'The id cannot be a key of the users table.')
  const flags = {
    isActive: flagOf(row['is_active'], true),
    isVerified: flagOf(row['email_verified'], false),
    isAdmin: flagOf(row['is_admin'], false),
  }
  const { isActive, isVerified, isAdmin } = flags
  if (isActive === null) return refusal('is_active', noFlag)
  if (isVerified === null) return refusal('email_verified', noFlag)
  if (isAdmin === null) return refusal('is_admin', noFlag)
  const createdAt = instantOf(row['created_at'], rules.now)
  if (createdAt === null)
    return refusal(
      'created_at',
      'Write an instant as ISO 8601, or as seconds or milliseconds since 1970. It must not be more than a day in the future.',
    )
  const refused = hash === null || isMarker(hash) ? null : refusalOf(hash, rules.hasher)
  if (refused) return refused
  const hashedPassword = hash === null || isMarker(hash) ? null : String(hash)
  const fields = fieldsOf(row, rules.hostFields)
  if ('rule' in fields) return fields as RowRefusal
  const user = newUser(rules.now, {
    email,
    name: name === '' ? null : name,
    hashedPassword: hashedPassword ?? unusablePassword(),
    isAdmin,
    isActive,
    createdAt,
    emailVerifiedAt: isVerified ? createdAt : null,
    // An imported account is never pending. Expired pending accounts are deleted, but an inactive account of the file must stay.
    activatedAt: createdAt,
    passwordSetAt: hashedPassword === null ? null : createdAt,
    ...(rules.hostFields.size > 0 && { fields: fields.values }),
  })
  return { ...(id !== null && { id: String(id) }), user }
}

function refusal(rule: string, message: string): RowRefusal {
  return { rule, message }
}

const noFlag = 'Write true or false.'

/** Django and this library write `!…` for no password. Other systems write `*`. */
function isMarker(hash: unknown): boolean {
  return typeof hash === 'string' && /^[!*]/.test(hash)
}

function refusalOf(hash: unknown, hasher: PasswordHasher): RowRefusal | null {
  if (typeof hash !== 'string' || hash.length > 1024) return refusal('password_hash', adviceOnHash(''))
  return hasher.reads && !hasher.reads(hash) ? refusal('password_hash', adviceOnHash(hash)) : null
}

/** An object from a JSON file may have no valid `toString`, so it becomes an empty text. */
function textOf(value: unknown): string {
  return typeof value === 'object' ? '' : String(value)
}

const flagWords: ReadonlyMap<string, boolean> = new Map([
  ...['true', 't', 'yes', '1'].map((word): [string, boolean] => [word, true]),
  ...['false', 'f', 'no', '0'].map((word): [string, boolean] => [word, false]),
])

/** `fallback`: missing. Null: no boolean. */
function flagOf(value: unknown, fallback: boolean): boolean | null {
  if (value === null || value === undefined) return fallback
  return flagWords.get(textOf(value).toLowerCase()) ?? null
}

const WITH_TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?/
const ZONE = /(Z|[+-]\d\d(:?\d\d)?)$/

const dayMs = 86_400_000

/** Without a zone: UTC. A time at most one day ahead becomes `now`, because clocks and zones differ. Null: later, or no time. */
function instantOf(value: unknown, now: Date): Date | null {
  if (value === null || value === undefined) return now
  const text = textOf(value).trim()
  const instant = /^\d{9,10}$/.test(text)
    ? new Date(Number(text) * 1000)
    : /^\d{11,14}$/.test(text)
      ? new Date(Number(text))
      : fromIso(text)
  const ahead = instant.getTime() - now.getTime()
  if (Number.isNaN(ahead) || ahead > dayMs) return null
  // With a time in the future, an account would seem newer than it is.
  return ahead > 0 ? now : instant
}

function fromIso(text: string): Date {
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return new Date(`${text}T00:00:00Z`)
  if (!WITH_TIME.test(text)) return new Date(Number.NaN)
  const whole = text
    .replace(' ', 'T')
    .replace(/ UTC$/, 'Z')
    .replace(/ (?=[+-])/, '')
  return new Date(ZONE.test(whole.slice(10)) ? whole.replace(/([+-]\d\d)$/, '$1:00') : `${whole}Z`)
}

function fieldsOf(row: ImportRow, hostFields: ImportRules['hostFields']): { values: Record<string, unknown> } | RowRefusal {
  const values: Record<string, unknown> = {}
  for (const [name, { type }] of hostFields) {
    const value = row[name]
    if (value === undefined) continue
    values[name] = type === 'boolean' && value !== null ? flagOf(value, false) : value
    if (type === 'boolean' && value !== null && values[name] === null) return refusal(name, noFlag)
  }
  return { values }
}

/** What a host does so that people with such a hash can log in. */
const forms: readonly (readonly [form: RegExp, name: string, advice: string])[] = [
  [/^\$2[aby]\$/, 'bcrypt', 'install the package bcrypt, or add bcryptReader()'],
  [/^\$2x\$/, 'bcrypt of the form $2x$', 'doorward cannot read it, because a faulty program made the hash'],
  [/^\$argon2/, 'argon2', 'use argon2idHasher(), which reads argon2id hashes within its limits'],
  [/^argon2\$argon2/, "Django's argon2", 'remove the first `argon2`, because argon2idHasher() reads the rest'],
  [/^bcrypt\$\$2/, "Django's bcrypt", 'remove the first `bcrypt$`, because bcryptReader() reads the rest'],
  [/^pbkdf2_sha(1|256)\$/, "Django's PBKDF2", 'add djangoPbkdf2Reader()'],
  [/^\$firebase-scrypt\$/, "Firebase's scrypt", 'add firebaseScryptReader({ … })'],
  [/^AQAAAA/, 'ASP.NET Identity', 'add aspNetIdentityReader()'],
  [/^\$scrypt\$|^scrypt[:$]/, 'scrypt', 'doorward has no reader for it: write a reader, { name, reads, verify }'],
  [
    /^([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})$/i,
    'a bare digest',
    'doorward cannot read it: import the account without a hash',
  ],
]

/** Never contains a part of the hash. */
function adviceOnHash(hash: string): string {
  const [, name, advice] = forms.find(([form]) => form.test(hash)) ?? []
  if (name === undefined || advice === undefined)
    return 'doorward does not know this hash. It never imports a plain password: hash the password, or omit it.'
  return `The hasher of this app does not read ${name}: ${advice} (docs/passwords.md).`
}
