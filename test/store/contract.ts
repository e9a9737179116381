import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import {
  type AuthStore,
  DuplicateRecordError,
  type NewIdentity,
  type NewUser,
  type RefreshTokenRecord,
  type Rotation,
  type SessionRecord,
  type UserRecord,
  type UserTokenRecord,
} from '../../src/store/auth-store'

export interface StoreContractOptions {
  /** May return the same store every time: each case works on users of its own. */
  makeStore(): Promise<Required<AuthStore>>
}

export interface StoreCase {
  readonly name: string
  run(): Promise<void>
}

/** What an AuthStore promises, as named cases for any test runner. */
export function storeContract({ makeStore }: StoreContractOptions): readonly StoreCase[] {
  return CASES.map(([name, check]) => ({ name, run: async () => check(await makeStore()) }))
}

type Check = (store: Required<AuthStore>) => Promise<void>

// Milliseconds that a column of whole seconds or tenths would lose.
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

export function newRefreshToken(userId: string, overrides: Partial<RefreshTokenRecord> = {}): RefreshTokenRecord {
  return {
    id: randomUUID(),
    userId,
    tokenHash: freshHash(),
    familyId: randomUUID(),
    parentId: null,
    amr: 'pwd otp',
    expiresAt: later(60_000),
    familyExpiresAt: later(600_000),
    usedAt: null,
    revokedAt: null,
    createdAt: AT,
    ...overrides,
  }
}

export function rotationOf(tokenHash: string, overrides: Partial<Rotation> = {}): Rotation {
  return { tokenHash, child: { id: randomUUID(), tokenHash: freshHash() }, childExpiresAt: later(120_000), at: later(1), ...overrides }
}

export function newSession(userId: string, overrides: Partial<SessionRecord> = {}): SessionRecord {
  return {
    id: randomUUID(),
    userId,
    sessionHash: freshHash(),
    amr: 'pwd',
    ip: '2001:db8::1',
    userAgent: 'Agent/1.0',
    createdAt: AT,
    lastSeenAt: AT,
    expiresAt: later(60_000),
    ...overrides,
  }
}

async function withUser(store: AuthStore, overrides: Partial<NewUser> = {}): Promise<UserRecord> {
  return store.users.insert(newUser(overrides))
}

async function withRefreshToken(store: Required<AuthStore>, overrides: Partial<RefreshTokenRecord> = {}): Promise<RefreshTokenRecord> {
  const token = newRefreshToken(overrides.userId ?? (await withUser(store)).id, overrides)
  await store.refreshTokens.insert(token)
  return token
}

const NOBODY = '00000000-0000-4000-8000-000000000000'
const NOT_IDS = ['', 'abc', '1', "' or '1'='1", '00000000-0000-4000-8000-00000000000', 'a\0b', `${NOBODY} `]

const CASES: readonly (readonly [string, Check])[] = [
  // ---- users -------------------------------------------------------------------------------------------------------
  [
    'a user comes back as it was inserted, under a UUID v4, instants exact to the millisecond',
    async ({ users }) => {
      const user = newUser({ lastLoginAt: later(1), totpSecret: 's', totpEnabledAt: later(2), totpLastStep: 58_000_000, isAdmin: true })
      const inserted = await users.insert(user)
      assert.match(inserted.id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      assert.deepEqual(inserted, { ...user, id: inserted.id })
      assert.deepEqual(await users.find(inserted.id), inserted)
      assert.deepEqual(await users.findByEmail(user.email), inserted)
    },
  ],
  [
    'instants before 1970, in a skipped hour of summer time and far ahead survive',
    async ({ users }) => {
      for (const at of [new Date('1969-12-31T23:59:59.001Z'), new Date('2026-03-29T02:30:00.123Z'), new Date('2199-12-31T23:59:59.999Z')]) {
        const { id } = await users.insert(newUser({ createdAt: at, lastLoginAt: at }))
        const found = await users.find(id)
        assert.deepEqual([found?.createdAt, found?.lastLoginAt], [at, at])
      }
    },
  ],
  [
    'an unknown or malformed id is not found, and changes nothing',
    async ({ users, userTokens, identities, refreshTokens, recoveryCodes, sessions }) => {
      for (const id of [NOBODY, ...NOT_IDS]) {
        assert.equal(await users.find(id), null)
        assert.equal(await users.lock(id), null)
        assert.equal(await users.update(id, { name: 'x' }), false)
        assert.equal(await users.advanceTotpStep(id, 1), false)
        assert.equal(await userTokens.consumeAllForUser(id, AT), 0)
        assert.deepEqual(await identities.listForUser(id), [])
        assert.equal(await identities.deleteForUser(id), 0)
        assert.equal(await identities.recordLogin({ userId: id, provider: 'google', subject: 's' }, AT), null)
        assert.equal(await refreshTokens.revokeForUser(id, AT), 0)
        assert.equal(await refreshTokens.revokeFamily(id, AT), 0)
        assert.equal(await recoveryCodes.consume(id, hashOf('x'), AT), false)
        assert.equal(await recoveryCodes.deleteForUser(id), 0)
        assert.equal(await sessions.touch(id, AT, AT), false)
        assert.equal(await sessions.delete(id, id), false)
        assert.deepEqual(await sessions.listForUser(id), [])
        assert.equal(await sessions.deleteForUser(id), 0)
      }
    },
  ],
  [
    'an id in other letters is another id',
    async ({ users }) => {
      const { id } = await users.insert(newUser())
      assert.equal(await users.find(id.toUpperCase()), null)
      assert.equal(await users.find(`{${id}}`), null)
      assert.equal(await users.find(id.replaceAll('-', '')), null)
    },
  ],
  [
    'an email is found byte for byte only',
    async ({ users }) => {
      const local = randomUUID()
      await users.insert(newUser({ email: `jose${local}@example.test` }))
      for (const email of [
        `Jose${local}@example.test`,
        `josé${local}@example.test`,
        `jose${local}@example.test `,
        `jose${local}@example.test\0`,
      ]) {
        assert.equal(await users.findByEmail(email), null)
      }
      assert.equal(await users.findByEmail(`jose${local}@example.te_t`), null)
      assert.equal(await users.findByEmail('%'), null)
      assert.equal(await users.findByEmail('x'.repeat(5000)), null)
    },
  ],
  [
    'a taken address is a DuplicateRecordError at insert and at update',
    async ({ users }) => {
      const first = await users.insert(newUser())
      const second = await users.insert(newUser())
      await assert.rejects(users.insert(newUser({ email: first.email })), DuplicateRecordError)
      await assert.rejects(users.update(second.id, { email: first.email }), DuplicateRecordError)
      assert.equal((await users.find(second.id))?.email, second.email)
    },
  ],
  [
    'update changes the given fields only and says whether the row was there',
    async ({ users }) => {
      const user = await users.insert(newUser({ totpLastStep: 5 }))
      assert.equal(await users.update(user.id, { name: null, isActive: false, updatedAt: later(5), totpLastStep: null }), true)
      assert.deepEqual(await users.find(user.id), { ...user, name: null, isActive: false, updatedAt: later(5), totpLastStep: null })
      assert.equal(await users.update(user.id, { isActive: false }), true) // no change is still a row
      assert.equal(await users.update(user.id, {}), true)
      assert.equal(await users.update(NOBODY, {}), false)
    },
  ],
  [
    'a text with NUL or half a surrogate pair is refused before the database',
    async ({ users }) => {
      const user = await users.insert(newUser())
      for (const name of ['a\0b', 'a\ud800b', '\udc00']) {
        await assert.rejects(users.insert(newUser({ name })), { code: 'VALIDATION_ERROR' })
        await assert.rejects(users.update(user.id, { name }), { code: 'VALIDATION_ERROR' })
      }
      assert.deepEqual(await users.find(user.id), user)
      assert.equal(await users.update(user.id, { name: '😀 \u202e ok' }), true)
      assert.equal((await users.find(user.id))?.name, '😀 \u202e ok')
    },
  ],
  [
    'a text longer than its column is refused, whatever the database thinks',
    async ({ users, identities }) => {
      const user = await users.insert(newUser())
      await assert.rejects(users.insert(newUser({ email: `${'a'.repeat(320)}@example.test` })), { code: 'VALIDATION_ERROR' })
      await assert.rejects(identities.insert(newIdentity(user.id, { subject: 'x'.repeat(256) })), { code: 'VALIDATION_ERROR' })
      await identities.insert(newIdentity(user.id, { subject: `${'x'.repeat(218)}-${randomUUID()}` }))
    },
  ],
  [
    'lock reads the row as it is',
    async (store) => {
      const user = await withUser(store)
      assert.deepEqual(await store.transaction((inside) => inside.users.lock(user.id)), user)
      assert.equal(await store.transaction((inside) => inside.users.lock(NOBODY)), null)
    },
  ],
  [
    'a locked row waits for nobody and is changed by nobody until the unit ends',
    async (store) => {
      const { id } = await withUser(store, { totpLastStep: 0 })
      const increment = () =>
        store.transaction(async (inside) => {
          const user = await inside.users.lock(id)
          await inside.users.update(id, { totpLastStep: (user?.totpLastStep ?? 0) + 1 })
        })
      await Promise.all(Array.from({ length: 8 }, increment))
      assert.equal((await store.users.find(id))?.totpLastStep, 8)
    },
  ],
  [
    'a TOTP step is accepted once and never goes back, also when ten callers bring it at once',
    async ({ users }) => {
      const { id } = await users.insert(newUser())
      const answers = await Promise.all(Array.from({ length: 10 }, () => users.advanceTotpStep(id, 100)))
      assert.equal(answers.filter(Boolean).length, 1)
      assert.equal(await users.advanceTotpStep(id, 99), false)
      assert.equal(await users.advanceTotpStep(id, 101), true)
      assert.equal(await users.advanceTotpStep(id, Number.NaN), false)
      assert.equal(await users.advanceTotpStep(id, 102.5), false)
      assert.equal((await users.find(id))?.totpLastStep, 101)
    },
  ],
  [
    'the fields of the table are known',
    async ({ users }) => {
      for (const field of ['id', 'email', 'name', 'totpLastStep', 'passwordSetAt'] as const) assert.ok(users.fields.has(field), field)
    },
  ],

  // ---- identities --------------------------------------------------------------------------------------------------
  [
    'an identity is found with its user',
    async (store) => {
      const user = await withUser(store)
      const identity = await store.identities.insert(newIdentity(user.id, { emailVerified: null }))
      assert.deepEqual(await store.identities.findWithUser('google', identity.subject), { identity, user })
      assert.equal(await store.identities.findWithUser('github', identity.subject), null)
      assert.equal(await store.identities.findWithUser('google', `${identity.subject}\0`), null)
    },
  ],
  [
    "subjects 'AbC', 'abc' and 'AbC ' are three users, and so are providers in other letters",
    async (store) => {
      const tail = randomUUID()
      const subjects = [`AbC${tail}`, `abc${tail}`, `AbC${tail} `, `ÀbC${tail}`, ` AbC${tail}`]
      const owners = new Map<string, string>()
      for (const subject of subjects) {
        const { id } = await withUser(store)
        await store.identities.insert(newIdentity(id, { subject }))
        owners.set(subject, id)
      }
      for (const subject of subjects) {
        assert.equal((await store.identities.findWithUser('google', subject))?.user.id, owners.get(subject))
      }
      assert.equal(await store.identities.findWithUser('Google', subjects[0] ?? ''), null)
      assert.equal(await store.identities.findWithUser('google', `AbC${tail}  `), null)
    },
  ],
  [
    'a numeric-looking subject matches itself only',
    async (store) => {
      const { id } = await withUser(store)
      const provider = `p${randomUUID().slice(0, 8)}`
      await store.identities.insert(newIdentity(id, { provider, subject: 'abc' }))
      for (const subject of ['0', '', 'abc0']) assert.equal(await store.identities.findWithUser(provider, subject), null)
    },
  ],
  [
    'an identity belongs to one account, and an account has one identity of a provider',
    async (store) => {
      const [one, other] = [await withUser(store), await withUser(store)]
      const identity = await store.identities.insert(newIdentity(one.id))
      await assert.rejects(store.identities.insert(newIdentity(other.id, { subject: identity.subject })), DuplicateRecordError)
      await assert.rejects(store.identities.insert(newIdentity(one.id)), DuplicateRecordError)
      await store.identities.insert(newIdentity(one.id, { provider: 'github' }))
      await store.identities.insert(newIdentity(other.id, { provider: 'github', subject: identity.subject }))
    },
  ],
  [
    'of ten inserts of one identity exactly one succeeds',
    async (store) => {
      const subject = randomUUID()
      const owners = await Promise.all(Array.from({ length: 10 }, () => withUser(store)))
      const results = await Promise.allSettled(owners.map(({ id }) => store.identities.insert(newIdentity(id, { subject }))))
      assert.equal(results.filter((result) => result.status === 'fulfilled').length, 1)
      for (const result of results) if (result.status === 'rejected') assert.ok(result.reason instanceof DuplicateRecordError)
    },
  ],
  [
    'identities are listed oldest first',
    async (store) => {
      const { id } = await withUser(store)
      for (const [provider, age] of [
        ['b', 2],
        ['c', 1],
        ['a', 3],
      ] as const) {
        await store.identities.insert(newIdentity(id, { provider, createdAt: later(-age) }))
      }
      assert.deepEqual(
        (await store.identities.listForUser(id)).map(({ provider }) => provider),
        ['a', 'b', 'c'],
      )
    },
  ],
  [
    'recordLogin stamps the identity and its user',
    async (store) => {
      const user = await withUser(store)
      const identity = await store.identities.insert(newIdentity(user.id))
      const other = await store.identities.insert(newIdentity(user.id, { provider: 'github' }))
      const stamped = await store.identities.recordLogin({ userId: user.id, provider: 'google', subject: identity.subject }, later(7))
      assert.deepEqual(stamped, { ...user, lastLoginAt: later(7) })
      assert.deepEqual(await store.users.find(user.id), stamped)
      assert.deepEqual(await store.identities.listForUser(user.id), byId([{ ...identity, lastLoginAt: later(7) }, other]))
    },
  ],
  [
    'recordLogin of an inactive user or of a link that is gone answers null and changes nothing',
    async (store) => {
      const user = await withUser(store, { isActive: false })
      const identity = await store.identities.insert(newIdentity(user.id))
      const link = { userId: user.id, provider: 'google', subject: identity.subject }
      assert.equal(await store.identities.recordLogin(link, later(7)), null)
      await store.users.update(user.id, { isActive: true })
      assert.equal(await store.identities.recordLogin({ ...link, provider: 'github' }, later(7)), null)
      assert.equal(await store.identities.recordLogin({ ...link, subject: identity.subject.toUpperCase() }, later(7)), null)
      assert.equal(await store.identities.recordLogin({ ...link, userId: (await withUser(store)).id }, later(7)), null)
      assert.equal((await store.users.find(user.id))?.lastLoginAt, null)
      assert.deepEqual((await store.identities.listForUser(user.id))[0], identity)
    },
  ],
  [
    'deleteForUser removes one provider or all, and says how many',
    async (store) => {
      const { id } = await withUser(store)
      for (const provider of ['a', 'b', 'c']) await store.identities.insert(newIdentity(id, { provider }))
      assert.equal(await store.identities.deleteForUser(id, 'x'), 0)
      assert.equal(await store.identities.deleteForUser(id, 'b'), 1)
      assert.equal(await store.identities.deleteForUser(id), 2)
      assert.deepEqual(await store.identities.listForUser(id), [])
    },
  ],

  // ---- one-shot tokens ---------------------------------------------------------------------------------------------
  [
    'a one-shot token is spent once, also when ten callers bring it at once',
    async (store) => {
      const { id } = await withUser(store)
      const token = await store.userTokens.insert(newUserToken(id, { payload: 'new@example.test' }))
      const spent = await Promise.all(
        Array.from({ length: 10 }, () => store.userTokens.consume(token.tokenHash, 'PASSWORD_RESET', later(5))),
      )
      assert.deepEqual(spent.filter(Boolean), [{ ...token, usedAt: later(5) }])
      assert.equal(await store.userTokens.consume(token.tokenHash, 'PASSWORD_RESET', later(6)), null)
    },
  ],
  [
    'an unknown, expired or spent token, or one of another purpose, is not spent',
    async (store) => {
      const { id } = await withUser(store)
      const token = await store.userTokens.insert(newUserToken(id, { expiresAt: later(100) }))
      const used = await store.userTokens.insert(newUserToken(id, { usedAt: AT }))
      const { consume } = store.userTokens
      assert.equal(await consume(freshHash(), 'PASSWORD_RESET', AT), null)
      assert.equal(await consume(`${token.tokenHash}\0`, 'PASSWORD_RESET', AT), null)
      assert.equal(await consume(token.tokenHash.toUpperCase(), 'PASSWORD_RESET', AT), null)
      assert.equal(await consume(token.tokenHash, 'ACTIVATION', AT), null)
      assert.equal(await consume(token.tokenHash, 'PASSWORD_RESET', later(100)), null) // ends at expiresAt, not after it
      assert.equal(await consume(used.tokenHash, 'PASSWORD_RESET', AT), null)
      assert.ok(await consume(token.tokenHash, 'PASSWORD_RESET', later(99)))
    },
  ],
  [
    'a token hash is unique',
    async (store) => {
      const { id } = await withUser(store)
      const token = await store.userTokens.insert(newUserToken(id))
      await assert.rejects(
        store.userTokens.insert(newUserToken(id, { tokenHash: token.tokenHash, purpose: 'MFA_CHALLENGE' })),
        DuplicateRecordError,
      )
    },
  ],
  [
    "consumeAllForUser spends the user's open tokens, of one purpose or all",
    async (store) => {
      const [mine, other] = [await withUser(store), await withUser(store)]
      const insert = (userId: string, purpose: UserTokenRecord['purpose']) => store.userTokens.insert(newUserToken(userId, { purpose }))
      const tokens = [await insert(mine.id, 'ACTIVATION'), await insert(mine.id, 'PASSWORD_RESET'), await insert(mine.id, 'PASSWORD_RESET')]
      const foreign = await insert(other.id, 'PASSWORD_RESET')
      assert.equal(await store.userTokens.consumeAllForUser(mine.id, AT, 'PASSWORD_RESET'), 2)
      assert.equal(await store.userTokens.consumeAllForUser(mine.id, AT), 1)
      assert.equal(await store.userTokens.consumeAllForUser(mine.id, AT), 0)
      for (const { tokenHash, purpose } of tokens) assert.equal(await store.userTokens.consume(tokenHash, purpose, AT), null)
      assert.ok(await store.userTokens.consume(foreign.tokenHash, 'PASSWORD_RESET', AT))
    },
  ],

  // ---- refresh tokens ----------------------------------------------------------------------------------------------
  [
    'a refresh token comes back as it was inserted',
    async (store) => {
      const token = await withRefreshToken(store, { amr: null })
      assert.deepEqual(await store.refreshTokens.find(token.tokenHash), token)
      assert.equal(await store.refreshTokens.find(token.tokenHash.toUpperCase()), null)
      assert.equal(await store.refreshTokens.find(`${token.tokenHash} `), null)
      await assert.rejects(store.refreshTokens.insert(newRefreshToken(token.userId, { tokenHash: token.tokenHash })), DuplicateRecordError)
    },
  ],
  [
    'rotate spends the token and continues its family: same user, amr and absolute end',
    async (store) => {
      const user = await withUser(store)
      const token = await withRefreshToken(store, { userId: user.id })
      const rotation = rotationOf(token.tokenHash)
      const rotated = await store.refreshTokens.rotate(rotation)
      const child = { ...token, ...rotation.child, parentId: token.id, expiresAt: rotation.childExpiresAt, createdAt: rotation.at }
      assert.deepEqual(rotated, { token: child, user })
      assert.deepEqual(await store.refreshTokens.find(rotation.child.tokenHash), child)
      assert.deepEqual(await store.refreshTokens.find(token.tokenHash), { ...token, usedAt: rotation.at })
    },
  ],
  [
    "the child's idle end is cut to the family's absolute end, and a null amr stays null",
    async (store) => {
      const token = await withRefreshToken(store, { familyExpiresAt: later(90_000), amr: null })
      const rotated = await store.refreshTokens.rotate(rotationOf(token.tokenHash, { childExpiresAt: later(120_000) }))
      assert.deepEqual(rotated?.token.expiresAt, later(90_000))
      assert.equal(rotated?.token.amr, null)
    },
  ],
  [
    'of ten rotations of one token exactly one wins, and the losers insert nothing',
    async (store) => {
      const token = await withRefreshToken(store)
      const rotations = Array.from({ length: 10 }, () => rotationOf(token.tokenHash))
      const results = await Promise.all(rotations.map((rotation) => store.refreshTokens.rotate(rotation)))
      const winners = results.flatMap((result) => result?.token.tokenHash ?? [])
      assert.equal(winners.length, 1)
      for (const { child } of rotations) {
        assert.equal((await store.refreshTokens.find(child.tokenHash)) !== null, child.tokenHash === winners[0])
      }
    },
  ],
  [
    'a spent, revoked, expired or unknown token, or one of an inactive user, is not rotated and nothing changes',
    async (store) => {
      const sleeper = await withUser(store, { isActive: false })
      const dead = [
        await withRefreshToken(store, { usedAt: AT }),
        await withRefreshToken(store, { revokedAt: AT }),
        await withRefreshToken(store, { expiresAt: later(1) }),
        await withRefreshToken(store, { familyExpiresAt: later(1) }),
        await withRefreshToken(store, { userId: sleeper.id }),
      ]
      for (const token of dead) {
        const rotation = rotationOf(token.tokenHash)
        assert.equal(await store.refreshTokens.rotate(rotation), null)
        assert.equal(await store.refreshTokens.find(rotation.child.tokenHash), null)
        assert.deepEqual(await store.refreshTokens.find(token.tokenHash), token)
      }
      assert.equal(await store.refreshTokens.rotate(rotationOf(freshHash())), null)
      assert.equal(await store.refreshTokens.rotate(rotationOf('a\0b')), null)
    },
  ],
  [
    'a rotation whose child cannot be inserted leaves the token unspent',
    async (store) => {
      const token = await withRefreshToken(store)
      const taken = await withRefreshToken(store)
      const rotation = rotationOf(token.tokenHash, { child: { id: randomUUID(), tokenHash: taken.tokenHash } })
      await assert.rejects(store.refreshTokens.rotate(rotation), DuplicateRecordError)
      assert.deepEqual(await store.refreshTokens.find(token.tokenHash), token)
    },
  ],
  [
    'revokeFamily ends every token of the family and no other, and says how many were live',
    async (store) => {
      const token = await withRefreshToken(store)
      const rotation = rotationOf(token.tokenHash)
      await store.refreshTokens.rotate(rotation)
      const bystander = await withRefreshToken(store, { userId: token.userId })
      assert.equal(await store.refreshTokens.revokeFamily(token.familyId, later(9)), 1)
      assert.equal(await store.refreshTokens.revokeFamily(token.familyId, later(10)), 0)
      for (const hash of [token.tokenHash, rotation.child.tokenHash]) {
        assert.deepEqual((await store.refreshTokens.find(hash))?.revokedAt, later(9))
      }
      assert.equal(await store.refreshTokens.rotate(rotationOf(rotation.child.tokenHash)), null)
      assert.ok(await store.refreshTokens.rotate(rotationOf(bystander.tokenHash)))
    },
  ],
  [
    'revokeForUser ends all families of the user, except the one named',
    async (store) => {
      const { id } = await withUser(store)
      const tokens = [await withRefreshToken(store, { userId: id }), await withRefreshToken(store, { userId: id })]
      const kept = await withRefreshToken(store, { userId: id })
      const foreign = await withRefreshToken(store)
      await withRefreshToken(store, { userId: id, expiresAt: AT }) // not live any more: revoked, not counted
      assert.equal(await store.refreshTokens.revokeForUser(id, later(9), { exceptFamilyId: kept.familyId }), 2)
      for (const { tokenHash } of tokens) assert.equal(await store.refreshTokens.rotate(rotationOf(tokenHash)), null)
      assert.ok(await store.refreshTokens.rotate(rotationOf(kept.tokenHash)))
      assert.equal(await store.refreshTokens.revokeForUser(id, later(9), { exceptFamilyId: 'no-such\0family' }), 1)
      assert.equal(await store.refreshTokens.revokeForUser(id, later(9)), 0)
      assert.ok(await store.refreshTokens.rotate(rotationOf(foreign.tokenHash)))
    },
  ],

  // ---- recovery codes ----------------------------------------------------------------------------------------------
  [
    'a recovery code is spent once by its owner only',
    async (store) => {
      const [mine, other] = [await withUser(store), await withUser(store)]
      const codes = [freshHash(), freshHash()] as const
      await store.recoveryCodes.replaceForUser(mine.id, codes)
      assert.equal(await store.recoveryCodes.consume(other.id, codes[0], AT), false)
      const answers = await Promise.all(Array.from({ length: 10 }, () => store.recoveryCodes.consume(mine.id, codes[0], AT)))
      assert.equal(answers.filter(Boolean).length, 1)
      assert.equal(await store.recoveryCodes.consume(mine.id, codes[1].toUpperCase(), AT), false)
      assert.equal(await store.recoveryCodes.consume(mine.id, codes[1], AT), true)
    },
  ],
  [
    'replaceForUser removes the old set, also when two sets arrive at once',
    async (store) => {
      const { id } = await withUser(store)
      await store.recoveryCodes.replaceForUser(id, [freshHash()])
      const sets = Array.from({ length: 4 }, () => [freshHash(), freshHash(), freshHash()])
      await Promise.all(sets.map((set) => store.recoveryCodes.replaceForUser(id, set)))
      const alive = await Promise.all(sets.map(async ([code = '']) => store.recoveryCodes.consume(id, code, AT)))
      assert.equal(alive.filter(Boolean).length, 1)
      assert.equal(await store.recoveryCodes.deleteForUser(id), 3)
      await store.recoveryCodes.replaceForUser(id, [])
      assert.equal(await store.recoveryCodes.deleteForUser(id), 0)
    },
  ],

  // ---- sessions ----------------------------------------------------------------------------------------------------
  [
    'a session is found with its user and slides',
    async (store) => {
      const user = await withUser(store)
      const session = newSession(user.id)
      await store.sessions.insert(session)
      assert.deepEqual(await store.sessions.findWithUser(session.sessionHash), { session, user })
      assert.equal(await store.sessions.findWithUser(session.sessionHash.toUpperCase()), null)
      assert.equal(await store.sessions.findWithUser('\0'), null)
      assert.equal(await store.sessions.touch(session.id, later(1), later(2)), true)
      const slid = { ...session, lastSeenAt: later(1), expiresAt: later(2) }
      assert.deepEqual(await store.sessions.listForUser(user.id), [slid])
      await assert.rejects(store.sessions.insert(newSession(user.id, { sessionHash: session.sessionHash })), DuplicateRecordError)
    },
  ],
  [
    'sessions are listed oldest first and ended one by one, or all but one, by their owner only',
    async (store) => {
      const [mine, other] = [await withUser(store), await withUser(store)]
      const sessions = [2, 1, 3, 4].map((age) => newSession(mine.id, { createdAt: later(-age) }))
      const foreign = newSession(other.id)
      for (const session of [...sessions, foreign]) await store.sessions.insert(session)
      const listed = (await store.sessions.listForUser(mine.id)).map(({ id }) => id)
      assert.deepEqual(
        listed,
        [3, 2, 0, 1].map((index) => sessions[index]?.id),
      )
      const [first = '', second = ''] = listed
      assert.equal(await store.sessions.delete(other.id, first), false)
      assert.equal(await store.sessions.delete(mine.id, first), true)
      assert.equal(await store.sessions.delete(mine.id, first), false)
      assert.equal(await store.sessions.deleteForUser(mine.id, { exceptId: second }), 2)
      assert.equal(await store.sessions.deleteForUser(mine.id), 1)
      assert.equal((await store.sessions.listForUser(other.id)).length, 1)
    },
  ],

  // ---- units of work -----------------------------------------------------------------------------------------------
  [
    'a unit keeps all of its work',
    async (store) => {
      const email = newUser().email
      const id = await store.transaction(async (inside) => {
        const user = await inside.users.insert(newUser({ email }))
        await inside.identities?.insert(newIdentity(user.id))
        assert.ok(await inside.users.find(user.id)) // it sees its own work
        return user.id
      })
      assert.equal((await store.users.findByEmail(email))?.id, id)
      assert.equal((await store.identities.listForUser(id)).length, 1)
    },
  ],
  [
    'a throw inside a unit leaves nothing and comes out as it was thrown',
    async (store) => {
      const before = await withUser(store)
      const email = newUser().email
      const token = await withRefreshToken(store, { userId: before.id })
      const reason = new Error('the host changed its mind')
      const unit = store.transaction(async (inside) => {
        const user = await inside.users.insert(newUser({ email }))
        await inside.identities?.insert(newIdentity(user.id))
        await inside.userTokens.insert(newUserToken(user.id))
        await inside.recoveryCodes?.replaceForUser(user.id, [freshHash()])
        await inside.sessions?.insert(newSession(user.id))
        await inside.refreshTokens?.rotate(rotationOf(token.tokenHash))
        await inside.users.update(before.id, { name: 'changed' })
        throw reason
      })
      await assert.rejects(unit, (error) => error === reason)
      assert.equal(await store.users.findByEmail(email), null)
      assert.deepEqual(await store.users.find(before.id), before)
      assert.deepEqual(await store.refreshTokens.find(token.tokenHash), token)
    },
  ],
  [
    'a unit inside a unit joins it: the outer throw undoes the inner work',
    async (store) => {
      const emails = [newUser().email, newUser().email] as const
      const unit = store.transaction(async (outer) => {
        await outer.users.insert(newUser({ email: emails[0] }))
        await outer.transaction(async (inner) => {
          assert.equal(inner, outer)
          await inner.users.insert(newUser({ email: emails[1] }))
        })
        throw new Error('outer')
      })
      await assert.rejects(unit, { message: 'outer' })
      for (const email of emails) assert.equal(await store.users.findByEmail(email), null)
    },
  ],
  [
    'a unit that swallowed a failed write is not a success',
    async (store) => {
      const { email: taken } = await withUser(store)
      const email = newUser().email
      const unit = store.transaction(async (inside) => {
        await inside.users.insert(newUser({ email }))
        await inside.users.insert(newUser({ email: taken })).catch(() => null)
        return 'done'
      })
      await assert.rejects(unit, DuplicateRecordError)
      assert.equal(await store.users.findByEmail(email), null)
    },
  ],
  [
    'the store works on after a failed unit',
    async (store) => {
      for (let round = 0; round < 8; round++) {
        await assert.rejects(store.transaction(() => Promise.reject(new Error('no'))))
      }
      assert.ok(await store.transaction((inside) => inside.users.insert(newUser())))
    },
  ],
]

function byId<R extends { id: string }>(records: R[]): R[] {
  return records.toSorted((one, other) => (one.id < other.id ? -1 : 1))
}
