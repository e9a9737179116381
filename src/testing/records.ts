import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import type {
  AuthStore,
  CompleteStore,
  EmailLoginRecord,
  IdentityRecord,
  InvitationRecord,
  NewIdentity,
  NewPasskey,
  NewUser,
  PasskeyRecord,
  Rotation,
  SessionRecord,
  TrustedDeviceRecord,
  UserRecord,
  UserTokenRecord,
} from '../store/auth-store'

// With milliseconds, so the cases fail for a column that stores only whole seconds or tenths of a second.
export const AT = new Date('2026-03-29T01:30:00.987Z')
export const later = (milliseconds: number, from = AT): Date => new Date(from.getTime() + milliseconds)
export const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')
export const freshHash = (): string => hashOf(randomUUID())

export function newUser(overrides: Partial<NewUser> = {}): NewUser {
  return {
    isActive: true,
    createdAt: AT,
    updatedAt: AT,
    email: `${randomUUID()}@example.test`,
    hashedPassword: '$argon2id$fake',
    isAdmin: false,
    lastLoginAt: null,
    name: 'Zoë',
    totpSecret: null,
    totpEnabledAt: null,
    totpLastStep: null,
    emailVerifiedAt: null,
    activatedAt: AT,
    passwordSetAt: AT,
    ...overrides,
  }
}

export function newIdentity(userId: string, overrides: Partial<NewIdentity> = {}): NewIdentity {
  return {
    userId,
    provider: 'google',
    subject: randomUUID(),
    email: 'someone@example.test',
    emailVerified: true,
    name: 'Zoë',
    picture: null,
    createdAt: AT,
    lastLoginAt: AT,
    ...overrides,
  }
}

export function newPasskey(userId: string, overrides: Partial<NewPasskey> = {}): NewPasskey {
  return {
    userId,
    userHandle: 'u'.repeat(43),
    credentialId: freshHash(),
    publicKey: 'pQECAyYgASFYIA',
    signCount: 0,
    transports: 'hybrid internal',
    isBackupEligible: true,
    isBackedUp: false,
    aaguid: 'ea9b8d66-4d01-1d21-3ce4-b6b48cb575d4',
    name: 'Zoë’s phone',
    createdAt: AT,
    lastUsedAt: null,
    ...overrides,
  }
}

export function newUserToken(userId: string, overrides: Partial<UserTokenRecord> = {}): Omit<UserTokenRecord, 'id'> {
  const { id: _, ...rest } = { id: '', ...overrides }
  return {
    userId,
    tokenHash: freshHash(),
    purpose: 'PASSWORD_RESET',
    payload: null,
    expiresAt: later(60_000),
    usedAt: null,
    createdAt: AT,
    ...rest,
  }
}

export function rotationOf(tokenHash: string, overrides: Partial<Rotation> = {}): Rotation {
  return { tokenHash, successorHash: freshHash(), generation: 1, expiresAt: later(120_000), at: later(1), ...overrides }
}

export function newSession(userId: string, overrides: Partial<SessionRecord> = {}): SessionRecord {
  return {
    id: randomUUID(),
    userId,
    kind: 'tokens',
    tokenHash: freshHash(),
    generation: 0,
    rotatedAt: null,
    amr: 'pwd otp',
    authenticatedAt: AT,
    isPersistent: true,
    ip: '2001:db8::1',
    userAgent: 'Agent/1.0',
    provider: 'google',
    providerSid: 'a-session-of-theirs',
    createdAt: AT,
    lastSeenAt: AT,
    expiresAt: later(60_000),
    endsAt: later(600_000),
    revokedAt: null,
    ...overrides,
  }
}

export function newEmailLogin(overrides: Partial<EmailLoginRecord> = {}): EmailLoginRecord {
  return {
    id: randomUUID(),
    email: `${randomUUID()}@example.test`,
    tokenHash: freshHash(),
    codeHash: freshHash(),
    tries: 0,
    returnTo: '/orders?page=2',
    ip: '2001:db8::1',
    userAgent: 'Agent/1.0',
    createdAt: AT,
    expiresAt: later(60_000),
    usedAt: null,
    sessionId: null,
    isKnownDevice: false,
    ...overrides,
  }
}

type NewTrustedDevice = Omit<TrustedDeviceRecord, 'id'>

export function newTrustedDevice(userId: string, overrides: Partial<NewTrustedDevice> = {}): NewTrustedDevice {
  return {
    userId,
    sessionId: randomUUID(),
    tokenHash: freshHash(),
    digest: 'd'.repeat(43),
    name: 'Firefox, Windows',
    createdAt: AT,
    lastUsedAt: later(1),
    endsAt: later(60_000),
    ...overrides,
  }
}

export async function withTrustedDevice(
  store: CompleteStore,
  userId: string,
  overrides: Partial<NewTrustedDevice> = {},
): Promise<TrustedDeviceRecord> {
  return asGiven(newTrustedDevice(userId, overrides), (given) => store.trustedDevices.insert(given))
}

type NewInvitation = Omit<InvitationRecord, 'id'>

export function newInvitation(overrides: Partial<NewInvitation> = {}): NewInvitation {
  return {
    tokenHash: freshHash(),
    email: `${randomUUID()}@example.test`,
    data: '{"team":"a"}',
    usesLeft: 1,
    isMailed: true,
    createdBy: null,
    createdAt: AT,
    expiresAt: later(60_000),
    revokedAt: null,
    ...overrides,
  }
}

export async function withInvitation(store: CompleteStore, overrides: Partial<NewInvitation> = {}): Promise<InvitationRecord> {
  return asGiven(newInvitation(overrides), (given) => store.invitations.insert(given))
}

export async function withEmailLogin(store: CompleteStore, overrides: Partial<EmailLoginRecord> = {}): Promise<EmailLoginRecord> {
  const login = newEmailLogin(overrides)
  await store.emailLogins.insert(login)
  return login
}

/** FULL_USER and EMPTY_USER have no equal values. Every nullable field of EMPTY_USER is null. */
export const FULL_USER: Omit<NewUser, 'email' | 'isActive'> = {
  createdAt: later(1),
  updatedAt: later(2),
  hashedPassword: '$argon2id$full',
  isAdmin: true,
  lastLoginAt: later(3),
  name: 'Zoë',
  totpSecret: 'a secret',
  totpEnabledAt: later(4),
  totpLastStep: 58_000_000,
  emailVerifiedAt: later(5),
  activatedAt: later(6),
  passwordSetAt: later(7),
}
export const EMPTY_USER: typeof FULL_USER = {
  createdAt: AT,
  updatedAt: AT,
  hashedPassword: '$argon2id$empty',
  isAdmin: false,
  lastLoginAt: null,
  name: null,
  totpSecret: null,
  totpEnabledAt: null,
  totpLastStep: null,
  emailVerifiedAt: null,
  activatedAt: null,
  passwordSetAt: null,
}

export const FULL_IDENTITY = { email: 'someone@example.test', emailVerified: true, name: 'Zoë', picture: 'https://example.test/zoe.png' }
export const EMPTY_IDENTITY = { email: null, emailVerified: null, name: null, picture: null }

export const FULL_SESSION = { generation: 7, rotatedAt: AT } // see `newSession`
export const FULL_EMAIL_LOGIN = { tries: 3, usedAt: later(1), sessionId: randomUUID(), isKnownDevice: true } // see `newEmailLogin`
export const EMPTY_EMAIL_LOGIN = {
  tokenHash: null,
  codeHash: null,
  returnTo: null,
  ip: null,
  userAgent: null,
}

/** Returns the fields that `newPasskey` does not leave at the other value, with a credential id of 512 bytes. */
export const emptyPasskey = () => ({
  credentialId: `${freshHash()}${'-_Az9'.repeat(123)}xyz_`,
  transports: '',
  isBackupEligible: false,
  isBackedUp: true,
  name: null,
})

export const EMPTY_SESSION = {
  rotatedAt: null,
  amr: '',
  authenticatedAt: null,
  isPersistent: false,
  ip: null,
  userAgent: null,
  provider: null,
  providerSid: null,
}

/** Asserts that the answer has the given values, so that a case compares what it reads with what it gave. */
export async function withUser(store: Pick<AuthStore, 'users'>, overrides: Partial<NewUser> = {}): Promise<UserRecord> {
  return asGiven(newUser(overrides), (given) => store.users.insert(given))
}

export async function withIdentity(store: CompleteStore, userId: string, overrides: Partial<NewIdentity> = {}): Promise<IdentityRecord> {
  return asGiven(newIdentity(userId, overrides), (given) => store.identities.insert(given))
}

export async function withPasskey(store: CompleteStore, userId: string, overrides: Partial<NewPasskey> = {}): Promise<PasskeyRecord> {
  return asGiven(newPasskey(userId, overrides), (given) => store.passkeys.insert(given))
}

export async function withUserToken(
  store: Pick<AuthStore, 'userTokens'>,
  userId: string,
  overrides: Partial<UserTokenRecord> = {},
): Promise<UserTokenRecord> {
  return asGiven(newUserToken(userId, overrides), (given) => store.userTokens.insert(given))
}

async function asGiven<Given, Stored extends Given & { id: string }>(
  given: Given,
  insert: (given: Given) => Promise<Stored>,
): Promise<Stored> {
  const stored = await insert(given)
  assert.deepEqual(stored, { ...given, id: stored.id })
  return stored
}

export async function withSession(store: CompleteStore, overrides: Partial<SessionRecord> = {}): Promise<SessionRecord> {
  const session = newSession(overrides.userId ?? (await withUser(store)).id, overrides)
  await store.sessions.insert(session)
  return session
}

/** Before the times of all other records: a row that has expired at this time belongs to the case that uses it. */
export const LONG_AGO = new Date('2001-02-03T04:05:06.789Z')

/** Other cases and an earlier run of the contract may have left rows of the time before `AT`. */
export async function deleteLongAgo({ users, userTokens, sessions, emailLogins, trustedDevices, invitations }: AuthStore): Promise<void> {
  const expired = { before: later(8 * 86_400_000, LONG_AGO), most: 1_000 }
  await deleteAll(async () => (await users.deleteAbandoned?.(expired))?.deleted ?? 0)
  for (const table of [userTokens, sessions, emailLogins, trustedDevices, invitations])
    await deleteAll(async () => (await table?.deleteExpired(expired)) ?? 0)
}

async function deleteAll(deleteSome: () => Promise<number>): Promise<void> {
  for (let rounds = 0; (await deleteSome()) > 0; rounds += 1) assert.ok(rounds < 1_000, 'a purge says without end that it deleted rows')
}

export const NOBODY = '00000000-0000-4000-8000-000000000000'
/** Not the canonical form of a UUID or an integer key, but databases accept some of these texts as keys. */
export const STRANGE_IDS = [
  '',
  'abc',
  '007',
  '1e3',
  '1.0',
  '+1',
  ' 1',
  '-0',
  "' or '1'='1",
  '00000000-0000-4000-8000-00000000000',
  'a\0b',
  `${NOBODY} `,
]
