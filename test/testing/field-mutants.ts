import type {
  CompleteStore,
  EmailLoginRecord,
  IdentityRecord,
  PasskeyRecord,
  SessionRecord,
  UserRecord,
  UserTokenRecord,
} from '../../src/store/auth-store'
import { AT, later, newEmailLogin, newIdentity, newPasskey, newSession, newUser, newUserToken, withUser } from '../../src/testing/records'
import type { Mutant } from './mutant'

interface Records {
  users: UserRecord
  identities: IdentityRecord
  userTokens: UserTokenRecord
  sessions: SessionRecord
  passkeys: PasskeyRecord
  emailLogins: EmailLoginRecord
}
type Table = keyof Records
type NullableFields<R> = { [F in keyof R as null extends R[F] ? F : never]: NonNullable<R[F]> }
type Row = Record<string, unknown>
type Verb = (...asked: unknown[]) => Promise<unknown>

/** A value for each field that may be null. */
const INVENTED: { [T in Table]: NullableFields<Records[T]> } = {
  users: {
    lastLoginAt: AT,
    name: 'a name',
    totpSecret: 'a secret',
    totpEnabledAt: AT,
    totpLastStep: 1,
    emailVerifiedAt: AT,
    activatedAt: AT,
    passwordSetAt: AT,
  },
  identities: { email: 'someone@example.test', emailVerified: false, name: 'a name', picture: 'a picture' },
  userTokens: { payload: 'a payload', usedAt: AT },
  sessions: {
    rotatedAt: AT,
    authenticatedAt: AT,
    ip: '192.0.2.1',
    userAgent: 'an agent',
    provider: 'a-provider',
    providerSid: 'a-sid',
    revokedAt: AT,
  },
  passkeys: { name: 'a name', lastUsedAt: AT },
  emailLogins: {
    tokenHash: 'a hash',
    codeHash: 'a hash',
    returnTo: '/',
    ip: '192.0.2.1',
    userAgent: 'an agent',
    usedAt: AT,
    sessionId: 'a session',
  },
}

const SAMPLES: { [T in Table]: Records[T] } = {
  users: { id: '', ...newUser() },
  identities: { id: '', ...newIdentity('') },
  userTokens: { id: '', ...newUserToken('') },
  sessions: newSession(''),
  passkeys: { id: '', ...newPasskey('') },
  emailLogins: newEmailLogin(),
}

/** One field that a verb gets wrong. */
interface Slip {
  readonly table: Table
  readonly field: string
  readonly kind: 'lost' | 'invented' | 'changed'
}

function slipsOf(table: Table, { except = [] }: { except?: readonly string[] } = {}): Slip[] {
  return Object.keys(SAMPLES[table])
    .filter((field) => !except.includes(field))
    .flatMap((field) =>
      (field in INVENTED[table] ? (['lost', 'invented', 'changed'] as const) : (['changed'] as const)).map((kind) => ({
        table,
        field,
        kind,
      })),
    )
}

function slipped({ table, field, kind }: Slip, value: unknown): unknown {
  if (kind === 'lost') return null
  if (kind === 'invented') return value ?? (INVENTED[table] as Row)[field]
  if (value instanceof Date) return later(1, value)
  if (typeof value === 'number') return value + 1
  if (typeof value === 'boolean') return !value
  return typeof value === 'string' ? value.slice(0, -1) + (value.endsWith('0') ? '1' : '0') : value
}

const withSlip = (slip: Slip, row: Row): Row => (slip.field in row ? { ...row, [slip.field]: slipped(slip, row[slip.field]) } : row)

/** The verb under a name that a type would not take. */
const verbOf = (store: CompleteStore, table: Table, verb: string) => (store[table] as unknown as Record<string, Verb>)[verb] as Verb

const withVerb = (store: CompleteStore, table: Table, verb: string, changed: Verb): Partial<CompleteStore> => ({
  [table]: { ...store[table], [verb]: changed },
})

const titled = (verb: string, { field, kind }: Slip, how: string): string => `${verb} with ${field} ${kind}${how}`

/** The row is stored otherwise than given; the answer repeats what was given. */
function insertMutants(table: Table, caughtBy: RegExp): Mutant[] {
  return slipsOf(table, { except: table === 'sessions' || table === 'emailLogins' ? [] : ['id'] }).map((slip) => ({
    name: titled(`${table}.insert`, slip, ''),
    caughtBy,
    change: (store) =>
      withVerb(store, table, 'insert', async (given) => {
        const row = given as Row
        const stored = slip.field === 'userId' ? { ...row, userId: (await withUser(store)).id } : withSlip(slip, row)
        const answer = await verbOf(store, table, 'insert')(stored)
        return answer && { ...answer, [slip.field]: row[slip.field] }
      }),
  }))
}

/** What is stored is right; the answer is not. `path` leads to the records in it. */
function answerMutants(table: Table, verb: string, caughtBy: RegExp, record: Table = table, path: readonly string[] = []): Mutant[] {
  return slipsOf(record).map((slip) => ({
    name: titled(`${table}.${verb}`, slip, ` in the ${path[0] ?? 'answer'}`),
    caughtBy,
    change: (store) => withVerb(store, table, verb, async (...asked) => withSlipAt(await verbOf(store, table, verb)(...asked), path, slip)),
  }))
}

function withSlipAt(answer: unknown, [key, ...rest]: readonly string[], slip: Slip): unknown {
  if (answer === null) return null
  if (Array.isArray(answer)) return answer.map((one) => withSlipAt(one, [], slip))
  const row = answer as Row
  return key === undefined ? withSlip(slip, row) : { ...row, [key]: withSlipAt(row[key], rest, slip) }
}

/** The verb also changes a field of its row that it was not asked to change, or changes it to another value. */
function sideEffectMutants(table: 'users' | 'sessions', verb: string, caughtBy: RegExp): Mutant[] {
  return slipsOf(table, { except: ['id', 'userId'] }).map((slip) => ({
    name: titled(`${table}.${verb}`, slip, ' on the side'),
    caughtBy,
    change: (store) =>
      withVerb(store, table, verb, async (...asked) => {
        const answer = await verbOf(store, table, verb)(...asked)
        if (answer) await spoil(store, slip, idOf(asked[0]) ?? (answer as { session: { id: string } }).session.id)
        return answer
      }),
  }))
}

/** Nothing changes a session that was revoked, so these spoil it before. Ending `expiresAt` with the session is allowed. */
function revocationMutants(caughtBy: { revoke: RegExp; revokeForUser: RegExp }): Mutant[] {
  return slipsOf('sessions', { except: ['id', 'userId', 'expiresAt', 'revokedAt'] }).flatMap((slip): Mutant[] => [
    {
      name: titled('sessions.revoke', slip, ' on the side'),
      caughtBy: caughtBy.revoke,
      change: (store) =>
        withVerb(store, 'sessions', 'revoke', async (wanted, at) => {
          await spoil(store, slip, idOf(wanted) ?? '')
          return verbOf(store, 'sessions', 'revoke')(wanted, at)
        }),
    },
    {
      name: titled('sessions.revokeForUser', slip, ' on the side'),
      caughtBy: caughtBy.revokeForUser,
      change: (store) =>
        withVerb(store, 'sessions', 'revokeForUser', async (userId, at, options) => {
          const { exceptId } = (options ?? {}) as { exceptId?: string }
          for (const { id } of await store.sessions.listForUser(userId as string, at as Date))
            if (id !== exceptId) await spoil(store, slip, id)
          return verbOf(store, 'sessions', 'revokeForUser')(userId, at, options)
        }),
    },
  ])
}

const idOf = (asked: unknown): string | undefined => (typeof asked === 'string' ? asked : (asked as { id?: string }).id)

async function spoil(store: CompleteStore, slip: Slip, id: string): Promise<void> {
  const row = slip.table === 'users' ? await store.users.find(id) : (await store.sessions.find({ id }))?.session
  if (row) await verbOf(store, slip.table, 'update')(id, { [slip.field]: slipped(slip, (row as unknown as Row)[slip.field]) })
}

/** Of the fields it is given, `update` leaves one as it was. */
function forgettingMutants(table: 'users' | 'sessions', caughtBy: RegExp, except: readonly string[]): Mutant[] {
  const fields = Object.keys(SAMPLES[table]).filter((field) => !except.includes(field))
  return fields.map((field) => ({
    name: `${table}.update without ${field}`,
    caughtBy,
    change: (store) =>
      withVerb(store, table, 'update', async (id, changes) => {
        const { [field]: _, ...rest } = changes as Row
        return Object.keys(rest).length === 0 || verbOf(store, table, 'update')(id, rest)
      }),
  }))
}

const SESSION_READ = /^a session comes back|^lock reads a living|^listForUser names/
const TOKEN_READ = /^a one-shot token is/
const IDENTITY_READ = /^an identity is found|^identities are listed|^recordLogin stamps/
const PASSKEY_READ = /^a passkey is read/
const EMAIL_LOGIN_READ = /^an email login is stored|^the open rows of an address/
const USER_READ = /^every verb that answers with a user/

/** These are no mutants: the field always has a value there, or never has one. */
const CHANGES_NOTHING =
  /(recordLogin with lastLoginAt|advanceTotpStep with totpLastStep|consume with usedAt|rotate with rotatedAt) invented|sessions\.(lock|listForUser|update|rotate|touch) with revokedAt (lost|changed)|emailLogins\.listOpen with usedAt (lost|changed)/

const ALL: Readonly<Record<string, readonly Mutant[]>> = {
  'users.insert': insertMutants('users', USER_READ),
  'identities.insert': insertMutants('identities', /^an identity is found/),
  'userTokens.insert': insertMutants('userTokens', TOKEN_READ),
  'sessions.insert': insertMutants('sessions', SESSION_READ),
  'passkeys.insert': insertMutants('passkeys', PASSKEY_READ),
  'emailLogins.insert': insertMutants('emailLogins', /^an email login is stored/),
  ...Object.fromEntries(
    ['insert', 'find', 'findByEmail', 'lock', 'lockAdmins'].map((verb) => [
      `the answer of users.${verb}`,
      answerMutants('users', verb, USER_READ),
    ]),
  ),
  'the answer of users.list': answerMutants('users', 'list', USER_READ, 'users', ['users']),
  'the answer of users.recordLogin': answerMutants('users', 'recordLogin', /^a login (stamps|may replace)/),
  'the answer of identities.insert': answerMutants('identities', 'insert', IDENTITY_READ),
  'the answer of identities.listForUser': answerMutants('identities', 'listForUser', IDENTITY_READ),
  'the answer of identities.recordLogin': answerMutants('identities', 'recordLogin', IDENTITY_READ, 'users'),
  'the answer of identities.findWithUser': [
    ...answerMutants('identities', 'findWithUser', IDENTITY_READ, 'identities', ['identity']),
    ...answerMutants('identities', 'findWithUser', IDENTITY_READ, 'users', ['user']),
  ],
  ...Object.fromEntries(
    ['insert', 'find', 'consume'].map((verb) => [`the answer of userTokens.${verb}`, answerMutants('userTokens', verb, TOKEN_READ)]),
  ),
  ...Object.fromEntries(
    ['lock', 'listForUser'].map((verb) => [`the answer of sessions.${verb}`, answerMutants('sessions', verb, SESSION_READ)]),
  ),
  'the answer of passkeys.insert': answerMutants('passkeys', 'insert', PASSKEY_READ),
  'the answer of passkeys.listForUser': answerMutants('passkeys', 'listForUser', PASSKEY_READ),
  'the answer of passkeys.findWithUser': [
    ...answerMutants('passkeys', 'findWithUser', PASSKEY_READ, 'passkeys', ['passkey']),
    ...answerMutants('passkeys', 'findWithUser', PASSKEY_READ, 'users', ['user']),
  ],
  'the answer of passkeys.recordLogin': answerMutants('passkeys', 'recordLogin', /^a login by passkey/, 'users'),
  'the answer of emailLogins.find': answerMutants('emailLogins', 'find', EMAIL_LOGIN_READ),
  'the answer of emailLogins.listOpen': answerMutants('emailLogins', 'listOpen', EMAIL_LOGIN_READ),
  'the answer of sessions.find': [
    ...answerMutants('sessions', 'find', SESSION_READ, 'sessions', ['session']),
    ...answerMutants('sessions', 'find', SESSION_READ, 'users', ['user']),
  ],
  'the answer of sessions.rotate': [
    ...rotatedMutants('sessions', 'session', ['id', 'userId', 'amr', 'authenticatedAt', 'expiresAt']),
    ...rotatedMutants('users', 'user', ['id', 'email']),
  ],
  'users.update': [
    ...sideEffectMutants('users', 'update', /^update changes/),
    ...forgettingMutants('users', /^update changes/, ['id', 'createdAt']),
  ],
  'users.recordLogin': sideEffectMutants('users', 'recordLogin', /^a login (stamps|may replace)/),
  'users.advanceTotpStep': sideEffectMutants('users', 'advanceTotpStep', /^a TOTP step/),
  'identities.recordLogin': sideEffectMutantsOfLink(),
  'sessions.update': [
    ...sideEffectMutants('sessions', 'update', /^update changes/),
    ...['amr', 'authenticatedAt', 'tokenHash', 'generation'].flatMap((field) =>
      forgettingMutants(
        'sessions',
        /^update changes/,
        Object.keys(SAMPLES.sessions).filter((other) => other !== field),
      ),
    ),
  ],
  'sessions.rotate': sideEffectMutants('sessions', 'rotate', /^rotate replaces/),
  'sessions.touch': sideEffectMutants('sessions', 'touch', /^touch slides/),
  'sessions.revoke and revokeForUser': revocationMutants({ revoke: /^revoke ends/, revokeForUser: /^revokeForUser ends/ }),
}

/** For each verb, a mutant for each field and each way to get it wrong. */
export const FIELD_MUTANTS: readonly (readonly [verb: string, mutants: readonly Mutant[]])[] = Object.entries(ALL).map(
  ([verb, mutants]) => [verb, mutants.filter(({ name }) => !CHANGES_NOTHING.test(name))],
)

function rotatedMutants(record: 'users' | 'sessions', key: string, fields: readonly string[]): Mutant[] {
  return fields.map((field) => ({
    name: `sessions.rotate with ${field} changed in the ${key}`,
    caughtBy: /^rotate replaces/,
    change: (store) =>
      withVerb(store, 'sessions', 'rotate', async (rotation) =>
        withSlipAt(await verbOf(store, 'sessions', 'rotate')(rotation), [key], { table: record, field, kind: 'changed' }),
      ),
  }))
}

function sideEffectMutantsOfLink(): Mutant[] {
  return slipsOf('users', { except: ['id'] }).map((slip) => ({
    name: titled('identities.recordLogin', slip, " on the user's side"),
    caughtBy: /^recordLogin stamps/,
    change: (store) =>
      withVerb(store, 'identities', 'recordLogin', async (...asked) => {
        const answer = await verbOf(store, 'identities', 'recordLogin')(...asked)
        if (answer) await spoil(store, slip, (answer as UserRecord).id)
        return answer
      }),
  }))
}
