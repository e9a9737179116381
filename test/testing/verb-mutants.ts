import type { CompleteStore, SessionWithUser } from '../../src/store/auth-store'
import { later, newUserToken } from '../../src/testing/records'
import type { Mutant } from './mutant'

type Verbs<T extends keyof CompleteStore> = (store: CompleteStore, knex: Parameters<Mutant['change']>[1]) => Partial<CompleteStore[T]>

const on =
  <T extends 'users' | 'identities' | 'userTokens' | 'recoveryCodes' | 'passkeys' | 'sessions' | 'emailLogins'>(table: T) =>
  (name: string, caughtBy: RegExp, verbs: Verbs<T>): Mutant => ({
    name,
    caughtBy,
    change: (store, knex) => ({ [table]: { ...store[table], ...verbs(store, knex) } }),
  })

const [users, identities, userTokens, recoveryCodes, passkeys, sessions, emailLogins] = [
  on('users'),
  on('identities'),
  on('userTokens'),
  on('recoveryCodes'),
  on('passkeys'),
  on('sessions'),
  on('emailLogins'),
]

const unit = (name: string, caughtBy: RegExp, transaction: (store: CompleteStore) => CompleteStore['transaction']): Mutant => ({
  name,
  caughtBy,
  change: (store) => ({ transaction: transaction(store) }),
})

const inWholeSeconds = (at: Date): Date => new Date(Math.trunc(at.getTime() / 1000) * 1000)
const ever = new Date('2400-01-01T00:00:00Z')

/** Lists of sessions that are not what was asked for. */
const manyMutants: readonly [what: string, change: (rows: SessionWithUser[]) => SessionWithUser[]][] = [
  ['a list of sessions that lacks one', (rows) => rows.slice(1)],
  ['a list of sessions without the revoked', (rows) => rows.filter(({ session }) => session.revokedAt === null)],
  ['a list of sessions without the expired', (rows) => rows.filter(({ session }) => session.expiresAt > later(1))],
  ['a list of sessions without inactive users', (rows) => rows.filter(({ user }) => user.isActive)],
  ['a list of sessions with the user of the first', (rows) => rows.map(({ session, user }) => ({ session, user: rows[0]?.user ?? user }))],
  [
    'a list of sessions whose users lost their names',
    (rows) => rows.map(({ session, user }) => ({ session, user: { ...user, name: null } })),
  ],
  [
    'a list of sessions that lost where they came from',
    (rows) => rows.map(({ session, user }) => ({ session: { ...session, ip: null }, user })),
  ],
  ['a list of sessions with one in the place of another', (rows) => rows.map((row, place) => (place === 0 ? row : (rows[0] ?? row)))],
]

/** One promise of the contract broken at a time. */
export const VERB_MUTANTS: readonly Mutant[] = [
  users('an address found in other letters', /^an email is found/, ({ users }) => ({
    findByEmail: (email) => users.findByEmail(email.toLowerCase()),
  })),
  users('an address found without its trailing blank', /^an email is found/, ({ users }) => ({
    findByEmail: (email) => users.findByEmail(email.trimEnd()),
  })),
  users('an id found in other letters', /^an id in other letters/, ({ users }) => ({ find: (id) => users.find(id.toLowerCase()) })),
  users('a user whose instants are cut to seconds', /to the millisecond/, ({ users }) => ({
    insert: (user) => users.insert({ ...user, createdAt: inWholeSeconds(user.createdAt) }),
  })),
  users('an update of nobody that says it was done', /^an unknown or malformed id is not found, and changes nothing$/, ({ users }) => ({
    update: async (id, changes) => (await users.update(id, changes)) || true,
  })),
  users('an update without a change that says the row was not there', /^update changes the given/, ({ users }) => ({
    update: async (id, changes) => Object.keys(changes).length > 0 && users.update(id, changes),
  })),
  users('an update that activates the account with other changes', /^update changes each/, ({ users }) => ({
    update: (id, changes) => users.update(id, Object.keys(changes).length > 0 ? { isActive: true, ...changes } : changes),
  })),
  users('an update that says an account was activated with other changes', /^update changes each/, ({ users }) => ({
    update: (id, changes) => users.update(id, { ...('isActive' in changes ? { activatedAt: later(6) } : {}), ...changes }),
  })),
  users('a purge of abandoned accounts that only says it took one', /^deleteAbandoned/, () => ({
    deleteAbandoned: async () => ({ deleted: 1, held: 0 }),
  })),
  users('a purge that takes an account whose newest link still works', /^deleteAbandoned/, ({ users }) => ({
    deleteAbandoned: async (expired) =>
      (await users.deleteAbandoned?.({ ...expired, before: later(2, expired.before) })) ?? { deleted: 0, held: 0 },
  })),
  users('a purge that takes an active account with an old link', /^deleteAbandoned/, ({ users }, knex) => ({
    async deleteAbandoned(expired) {
      const taken = await users.deleteAbandoned?.(expired)
      await knex('auth_user_tokens').delete()
      await knex('auth_users').where({ is_active: true }).delete()
      return taken ?? { deleted: 0, held: 0 }
    },
  })),
  users('a purge that takes more abandoned accounts than it may', /^deleteAbandoned/, ({ users }) => ({
    deleteAbandoned: async (expired) => (await users.deleteAbandoned?.({ ...expired, most: 1_000 })) ?? { deleted: 0, held: 0 },
  })),
  users('a login that does not look at the hash', /^a login/, ({ users }) => ({
    recordLogin: async ({ id }, at, changes) => {
      const user = await users.find(id)
      return user && users.recordLogin(user, at, changes)
    },
  })),
  users('a login of an inactive user', /^a login of an inactive/, ({ users }) => ({
    recordLogin: async (seen, at, changes) => (await users.recordLogin(seen, at, changes)) ?? users.find(seen.id),
  })),
  users('a login that moves updatedAt', /^a login stamps/, ({ users }) => ({
    async recordLogin(seen, at, changes) {
      const user = await users.recordLogin(seen, at, changes)
      if (!user) return null
      await users.update(seen.id, { updatedAt: at })
      return users.find(seen.id)
    },
  })),
  users('a login that forgets the rehash', /^a login may replace/, ({ users }) => ({
    recordLogin: (seen, at) => users.recordLogin(seen, at),
  })),
  users('a TOTP step accepted twice', /^a TOTP step is accepted once/, ({ users }) => ({
    advanceTotpStep: async (id, step) => (await users.advanceTotpStep(id, step)) || (await users.find(id))?.totpLastStep === step,
  })),
  users('a TOTP step that goes back', /^a TOTP step is accepted once/, ({ users }) => ({
    advanceTotpStep: async (id, step) => Number.isSafeInteger(step) && users.update(id, { totpLastStep: step }),
  })),
  users('a list that ignores its filters', /^each filter/, ({ users }) => ({
    list: (listing) => users.list({ ...listing, filters: listing.filters.slice(0, 1) }),
  })),
  users('a list that ignores its limit', /^pages follow/, ({ users }) => ({ list: (listing) => users.list({ ...listing, limit: 1_000 }) })),
  users('a list that ignores where the page before ended', /^pages follow/, ({ users }) => ({
    list: async ({ after, ...listing }) => {
      const page = await users.list({ ...listing, after: null })
      return after === null ? page : { ...page, next: null }
    },
  })),
  users('a list that skips the first row of each page', /^pages follow|^each filter/, ({ users }) => ({
    list: async (listing) => {
      const page = await users.list(listing)
      return { ...page, users: page.users.slice(1) }
    },
  })),
  users('a list that is newest first', /^each filter/, ({ users }) => ({
    list: async (listing) => {
      const page = await users.list(listing)
      return { ...page, users: page.users.toReversed() }
    },
  })),
  users('a list that never ends', /^each filter/, ({ users }) => ({
    list: async (listing) => ({ ...(await users.list(listing)), next: 'more' }),
  })),
  users('administrators with the inactive ones among them', /^the active administrators/, ({ users }) => ({
    lockAdmins: async () =>
      (await users.list({ filters: [{ field: 'isAdmin', operator: 'eq', value: true }], after: null, limit: 100 })).users.toSorted(
        (a, b) => (a.id < b.id ? -1 : 1),
      ),
  })),
  users('administrators in another order', /^the active administrators/, ({ users }) => ({
    lockAdmins: async () => (await users.lockAdmins()).toReversed(),
  })),
  users('no administrators', /^every verb that answers/, () => ({ lockAdmins: async () => [] })),

  identities('an unknown emailVerified stored as false', /^an identity is found/, ({ identities }) => ({
    insert: (identity) => identities.insert({ ...identity, emailVerified: identity.emailVerified ?? false }),
  })),
  identities('an identity found by its subject in other letters', /^subjects/, ({ identities }) => ({
    findWithUser: async (provider, subject) =>
      (await identities.findWithUser(provider, subject)) ?? identities.findWithUser(provider.toLowerCase(), subject.trimEnd()),
  })),
  identities('identities that are newest first', /^identities are listed/, ({ identities }) => ({
    listForUser: async (userId) => (await identities.listForUser(userId)).toReversed(),
  })),
  identities('a login with the identity of an inactive user', /^recordLogin of an inactive/, ({ identities, users }) => ({
    recordLogin: async (link, at) => (await identities.recordLogin(link, at)) ?? users.find(link.userId),
  })),
  identities('a login that stamps the user only', /^recordLogin stamps/, ({ users }) => ({
    async recordLogin({ userId }, at) {
      await users.update(userId, { lastLoginAt: at })
      return users.find(userId)
    },
  })),
  identities('identities of every provider deleted for one', /^deleteForUser/, ({ identities }) => ({
    deleteForUser: async (userId, provider) => {
      const count = await identities.deleteForUser(userId, provider)
      if (count > 0) await identities.deleteForUser(userId)
      return count
    },
  })),
  identities('identities deleted for everybody', /^deleteForUser/, ({ identities }, knex) => ({
    deleteForUser: async (userId, provider) => {
      const count = await identities.deleteForUser(userId, provider)
      if (provider === undefined) await knex('auth_identities').delete()
      return count
    },
  })),

  userTokens('a token found in other letters', /^a one-shot token is found/, ({ userTokens }) => ({
    find: (hash) => userTokens.find(hash.toLowerCase()),
  })),
  userTokens('a token spent twice', /^a one-shot token is spent/, ({ userTokens }) => ({
    consume: async (hash, purpose, at) => (await userTokens.consume(hash, purpose, at)) ?? userTokens.find(hash),
  })),
  userTokens('a token spent for another purpose', /^an unknown, expired or spent/, ({ userTokens }) => ({
    consume: async (hash, purpose, at) => userTokens.consume(hash, (await userTokens.find(hash))?.purpose ?? purpose, at),
  })),
  userTokens('a token spent in the millisecond of its end', /^an unknown, expired or spent/, ({ userTokens }) => ({
    consume: (hash, purpose, at) => userTokens.consume(hash, purpose, later(-1, at)),
  })),
  userTokens('superseded tokens that keep their end', /^a superseded token ends/, ({ userTokens }, knex) => ({
    async consumeAllForUser(userId, at, purpose) {
      const rows = await knex('auth_user_tokens').where({ user_id: userId }).select('id', 'expires_at')
      const count = await userTokens.consumeAllForUser(userId, at, purpose)
      for (const { id, expires_at } of rows) await knex('auth_user_tokens').where({ id }).update({ expires_at })
      return count
    },
  })),
  userTokens('superseded tokens of every purpose', /^consumeAllForUser/, ({ userTokens }) => ({
    consumeAllForUser: (userId, at) => userTokens.consumeAllForUser(userId, at),
  })),
  userTokens('UNDO tokens that every change spends', /^consumeAllForUser .*UNDO/, ({ userTokens }) => ({
    consumeAllForUser: async (userId, at, purpose) =>
      (await userTokens.consumeAllForUser(userId, at, purpose)) +
      (purpose === undefined ? await userTokens.consumeAllForUser(userId, at, 'UNDO') : 0),
  })),
  userTokens('open tokens with the newest first', /^listOpen/, ({ userTokens }) => ({
    listOpen: async (userId, purpose, at) => (await userTokens.listOpen(userId, purpose, at)).reverse(),
  })),
  userTokens('expired tokens among the open ones', /^listOpen/, ({ userTokens }) => ({
    listOpen: (userId, purpose) => userTokens.listOpen(userId, purpose, new Date(0)),
  })),
  userTokens('a superseded token that looks redeemed', /^wasConsumed tells/, () => ({
    wasConsumed: async (_id, purpose) => purpose === 'PASSWORD_RESET',
  })),
  userTokens('a redeemed token that is forgotten', /^wasConsumed tells/, () => ({ wasConsumed: async () => false })),
  userTokens('expired tokens deleted without a limit', /^deleteExpired .*one-shot/, ({ userTokens }) => ({
    deleteExpired: ({ before }) => userTokens.deleteExpired({ before, most: 1_000 }),
  })),
  userTokens('tokens deleted before they end', /^deleteExpired .*one-shot/, ({ userTokens }) => ({
    deleteExpired: ({ most }) => userTokens.deleteExpired({ before: ever, most }),
  })),
  userTokens('a token that replaces the one with its hash', /^a token hash is unique/, ({ userTokens }, knex) => ({
    async insert(token) {
      await knex('auth_user_tokens').where({ token_hash: token.tokenHash }).delete()
      return userTokens.insert(newUserToken(token.userId, token))
    },
  })),

  recoveryCodes('a recovery code spent twice', /^a recovery code/, ({ recoveryCodes }, knex) => ({
    async consume(userId, codeHash, at) {
      const isSpent = await recoveryCodes.consume(userId, codeHash, at)
      if (isSpent) await knex('auth_recovery_codes').where({ code_hash: codeHash }).update({ used_at: null })
      return isSpent
    },
  })),
  recoveryCodes('a recovery code of somebody else', /^a recovery code/, ({ recoveryCodes }, knex) => ({
    async consume(userId, codeHash, at) {
      const row = await knex('auth_recovery_codes').where({ code_hash: codeHash }).first('user_id')
      return recoveryCodes.consume(row?.user_id ?? userId, codeHash, at)
    },
  })),
  recoveryCodes('a set of codes beside the old one', /^replaceForUser/, ({ recoveryCodes }) => ({
    replaceForUser: async (userId, hashes) => (hashes.length > 0 ? recoveryCodes.replaceForUser(userId, hashes) : undefined),
  })),
  recoveryCodes("a set of codes instead of everybody's", /^replaceForUser/, ({ recoveryCodes }, knex) => ({
    async replaceForUser(userId, hashes) {
      await knex('auth_recovery_codes').delete()
      await recoveryCodes.replaceForUser(userId, hashes)
    },
  })),
  recoveryCodes('a set of codes that stays', /^replaceForUser/, () => ({ deleteForUser: async () => 0 })),

  emailLogins('an email login found by its token in other letters', /^the hash of a token/, ({ emailLogins }) => ({
    find: (wanted) => emailLogins.find('id' in wanted ? wanted : { tokenHash: wanted.tokenHash.toLowerCase() }),
  })),
  emailLogins('tries that are looked at before they are counted', /^a try is counted/, ({ emailLogins }, knex) => ({
    async countTry(id, most, at) {
      const login = await emailLogins.find({ id })
      if (!login || login.usedAt || login.expiresAt <= at || login.tries >= most) return null
      await knex('auth_email_logins')
        .where({ id })
        .update({ tries: login.tries + 1 })
      return { ...login, tries: login.tries + 1 }
    },
  })),
  emailLogins('one try more than allowed', /^a try is counted/, ({ emailLogins }) => ({
    countTry: (id, most, at) => emailLogins.countTry(id, most + 1, at),
  })),
  emailLogins('tries of a row that has expired', /^no try is counted/, ({ emailLogins }) => ({
    countTry: (id, most) => emailLogins.countTry(id, most, later(-1)),
  })),
  emailLogins('an email login used twice', /^an email login is used once/, ({ emailLogins }, knex) => ({
    async consume(id, at) {
      const isUsed = await emailLogins.consume(id, at)
      if (isUsed) await knex('auth_email_logins').where({ id }).update({ used_at: null })
      return isUsed
    },
  })),
  emailLogins('an email login used after its end', /^an email login is used once/, ({ emailLogins }) => ({
    consume: (id, at) => emailLogins.consume(id, later(-1, at)),
  })),
  emailLogins('open rows, newest first', /^the open rows/, ({ emailLogins }) => ({
    listOpen: async (email, at) => (await emailLogins.listOpen(email, at)).toReversed(),
  })),
  emailLogins("everybody's rows used up", /^the open rows/, (_store, knex) => ({
    consumeAllForEmail: (_email, at) => knex('auth_email_logins').whereNull('used_at').update({ used_at: at }),
  })),
  emailLogins('a purge of email logins that takes more than it may', /^emailLogins.deleteExpired/, ({ emailLogins }) => ({
    deleteExpired: (expired) => emailLogins.deleteExpired({ ...expired, most: 1_000 }),
  })),
  emailLogins('a purge that takes open email logins', /^emailLogins.deleteExpired/, ({ emailLogins }) => ({
    deleteExpired: (expired) => emailLogins.deleteExpired({ ...expired, before: later(1, expired.before) }),
  })),
  emailLogins('an email login without its count', /^an email login is stored/, ({ emailLogins }) => ({
    insert: (login) => emailLogins.insert({ ...login, tries: 0 }),
  })),

  sessions('a session found whatever its kind', /^a session comes back/, ({ sessions }) => ({
    find: async (wanted) =>
      (await sessions.find(wanted)) ??
      ('id' in wanted ? null : sessions.find({ ...wanted, kind: wanted.kind === 'tokens' ? 'session' : 'tokens' })),
  })),
  sessions('a session found in other letters', /^a session comes back/, ({ sessions }) => ({
    find: (wanted) => sessions.find('id' in wanted ? wanted : { ...wanted, tokenHash: wanted.tokenHash.toLowerCase() }),
  })),
  ...manyMutants.map(([what, change]) =>
    sessions(what, /^findMany reads/, ({ sessions }) => ({
      findMany: async (ids) => change((await sessions.findMany?.(ids)) ?? []),
    })),
  ),
  sessions('a session locked that has ended', /^lock reads a living/, ({ sessions }) => ({
    lock: async (id) => (await sessions.find({ id }))?.session ?? null,
  })),
  sessions('a rotation that two win', /^of ten rotations/, ({ sessions }) => ({
    async rotate(rotation) {
      const found = await sessions.find({ tokenHash: rotation.tokenHash, kind: 'tokens' })
      return (await sessions.rotate(rotation)) ?? found
    },
  })),
  sessions('a rotation past the absolute end', /^rotate cuts/, ({ sessions }, knex) => ({
    async rotate(rotation) {
      const rotated = await sessions.rotate(rotation)
      if (!rotated) return null
      await knex('auth_sessions')
        .where({ id: rotated.session.id })
        .update({ expires_at: knex.ref('ends_at') })
      return { ...rotated, session: { ...rotated.session, expiresAt: rotation.expiresAt } }
    },
  })),
  ...(['userActive', 'kind', 'revokedAt', 'expiresAt'] as const).map((ignored) =>
    sessions(`a rotation that does not look at ${ignored}`, /rotate changes nothing$/, ({ sessions }) => ({
      async rotate(rotation) {
        const rotated = await sessions.rotate(rotation)
        if (rotated) return rotated
        const { tokenHash } = rotation
        const found = (await sessions.find({ tokenHash, kind: 'tokens' })) ?? (await sessions.find({ tokenHash, kind: 'session' }))
        if (!found) return null
        const { session, user } = found
        const refusals = {
          userActive: !user.isActive,
          kind: session.kind !== 'tokens',
          revokedAt: session.revokedAt !== null,
          expiresAt: session.expiresAt <= rotation.at,
        }
        return refusals[ignored] ? found : null
      },
    })),
  ),
  ...(['tokenHash', 'generation', 'rotatedAt', 'lastSeenAt', 'expiresAt'] as const).map((field) =>
    sessions(`a rotation that forgets ${field}`, /^rotate replaces/, ({ sessions }) => ({
      async rotate(rotation) {
        const before = await sessions.find({ tokenHash: rotation.tokenHash, kind: 'tokens' })
        const rotated = await sessions.rotate(rotation)
        if (rotated && before) await sessions.update(before.session.id, { [field]: before.session[field] })
        return rotated
      },
    })),
  ),
  sessions('a touch that revives a revoked session', /^touch slides/, ({ sessions }, knex) => ({
    async touch(id, ...slide) {
      await knex('auth_sessions').where({ id }).update({ revoked_at: null })
      return sessions.touch(id, ...slide)
    },
  })),
  sessions('a touch that ignores seenBy', /^touch slides/, ({ sessions }) => ({
    touch: (id, _seenBy, ...slide) => sessions.touch(id, ever, ...slide),
  })),
  sessions('a touch that ignores the token', /^touch slides/, ({ sessions }) => ({
    async touch(id, seenBy, slid) {
      const found = await sessions.find({ id })
      return found !== null && sessions.touch(id, seenBy, slid, found.session.tokenHash)
    },
  })),
  sessions('an update that revives a revoked session', /^update changes what/, ({ sessions }, knex) => ({
    async update(id, changes) {
      await knex('auth_sessions').where({ id }).update({ revoked_at: null })
      return sessions.update(id, changes)
    },
  })),
  sessions('sessions that are newest first', /^listForUser/, ({ sessions }) => ({
    listForUser: async (userId, at) => (await sessions.listForUser(userId, at)).toReversed(),
  })),
  sessions('sessions listed with the expired ones', /^listForUser/, ({ sessions }) => ({
    listForUser: (userId, at) => sessions.listForUser(userId, later(-1, at)),
  })),
  sessions('sessions listed with the revoked ones', /^listForUser/, ({ sessions }, knex) => ({
    async listForUser(userId, at) {
      await knex('auth_sessions').where({ user_id: userId }).update({ revoked_at: null })
      return sessions.listForUser(userId, at)
    },
  })),
  sessions('an insert within a limit that ends nothing', /^insertWithin/, ({ sessions }) => ({
    insertWithin: async (session) => {
      await sessions.insert(session)
      return 1
    },
  })),
  sessions('an insert within a limit that leaves one too few', /^insertWithin/, ({ sessions }) => ({
    insertWithin: async (session, most) => (await sessions.insertWithin?.(session, most - 1)) ?? 0,
  })),
  sessions('a revocation that ignores the owner', /^revoke ends/, ({ sessions }) => ({
    revoke: ({ userId: _, ...wanted }, at) => sessions.revoke(wanted, at),
  })),
  sessions('a revocation that ignores the kind', /^revoke ends/, ({ sessions }) => ({
    revoke: ({ kind: _, ...wanted }, at) => sessions.revoke(wanted, at),
  })),
  sessions('a revocation that spares what has expired', /^revoke and revokeForUser end an expired/, ({ sessions }) => ({
    revoke: async (wanted, at) => isAliveAt(await sessions.find({ id: String(wanted.id) }), at) && sessions.revoke(wanted, at),
  })),
  sessions('a revocation that takes only the first id of a list', /^revoke takes a list/, ({ sessions }) => ({
    revoke: ({ id, ...others }, at) => sessions.revoke({ id: [id].flat()[0] ?? '', ...others }, at),
  })),
  sessions('a revocation that does nothing', /^revoke ends/, () => ({ revoke: async () => true })),
  sessions('revocations that ignore the exception', /^revokeForUser/, ({ sessions }) => ({
    revokeForUser: (userId, at, { exceptId: _, ...others } = {}) => sessions.revokeForUser(userId, at, others),
  })),
  sessions('revocations that ignore the credential', /^revokeForUser with a credential/, ({ sessions }) => ({
    revokeForUser: (userId, at, { amr: _amr, provider: _provider, ...others } = {}) => sessions.revokeForUser(userId, at, others),
  })),
  sessions('revocations by a method where a provider was named', /^revokeForUser with a credential/, ({ sessions }) => ({
    revokeForUser: (userId, at, { provider, ...others } = {}) =>
      sessions.revokeForUser(userId, at, provider === undefined ? others : { ...others, amr: 'ext' }),
  })),
  sessions('revocations that spare the expired ones', /^revoke and revokeForUser end an expired/, ({ sessions }) => ({
    async revokeForUser(userId, at, options) {
      const living = (await sessions.listForUser(userId, at)).filter(({ id }) => id !== options?.exceptId)
      for (const { id } of living) await sessions.revoke({ id }, at)
      return living.length
    },
  })),
  sessions('a touch of an expired session', /^touch slides/, ({ sessions }, knex) => ({
    async touch(id, ...slide) {
      await knex('auth_sessions')
        .where({ id })
        .update({ expires_at: knex.ref('ends_at') })
      return sessions.touch(id, ...slide)
    },
  })),
  sessions('revocations that do nothing', /^revokeForUser/, () => ({ revokeForUser: async () => 2 })),
  sessions("revocations of everybody's sessions", /^revokeForUser/, ({ sessions }, knex) => ({
    async revokeForUser(userId, at, options) {
      await knex('auth_sessions').whereNot({ user_id: userId }).update({ revoked_at: at.toISOString() })
      return sessions.revokeForUser(userId, at, options)
    },
  })),
  sessions('expired sessions deleted without a limit', /^deleteExpired .*: sessions/, ({ sessions }) => ({
    deleteExpired: ({ before }) => sessions.deleteExpired({ before, most: 1_000 }),
  })),
  sessions('sessions deleted before they end', /^deleteExpired .*: sessions/, ({ sessions }) => ({
    deleteExpired: ({ most }) => sessions.deleteExpired({ before: ever, most }),
  })),
  sessions('revoked sessions kept until they would have ended', /^deleteExpired takes a session/, ({ sessions }, knex) => ({
    async deleteExpired(expired) {
      await knex('auth_sessions')
        .whereNotNull('revoked_at')
        .update({ expires_at: knex.ref('ends_at') })
      return sessions.deleteExpired(expired)
    },
  })),

  passkeys('a use of a passkey that forgets that it may be backed up', /^a use is written down/, ({ passkeys }, knex) => ({
    async recordUse(use) {
      const isUsed = await passkeys.recordUse(use)
      await knex('auth_passkeys').where({ id: use.id }).update({ is_backup_eligible: false })
      return isUsed
    },
  })),
  passkeys('a login by passkey that does not say whether it is backed up now', /^a login by passkey/, ({ passkeys }) => ({
    recordLogin: (use, used) => passkeys.recordLogin({ ...use, isBackedUp: false }, used),
  })),
  passkeys('a new name that forgets that the passkey may be backed up', /^a passkey is renamed/, ({ passkeys }, knex) => ({
    async rename(id, userId, name) {
      const isRenamed = await passkeys.rename(id, userId, name)
      await knex('auth_passkeys').where({ id }).update({ is_backup_eligible: false })
      return isRenamed
    },
  })),

  unit('a unit that keeps what was done before a throw', /^a throw inside a unit/, (store) => (work) => work(store)),
  unit(
    'a unit that swallows a throw',
    /^a throw in a unit inside/,
    ({ transaction }) =>
      (work, options) =>
        transaction(work, options).catch(() => undefined as never),
  ),
  {
    name: 'a unit inside a unit that swallows its throw',
    caughtBy: /^a throw in a unit inside/,
    change: ({ transaction }) => ({
      transaction: (work, options) =>
        transaction(
          (outer) => work({ ...outer, transaction: (inner, options) => outer.transaction(inner, options).catch(() => undefined as never) }),
          options,
        ),
    }),
  },
  unit(
    'a failed unit that rejects with an error of its own',
    /^a throw inside a unit/,
    ({ transaction }) =>
      (work, options) =>
        transaction(work, options).catch((cause: unknown) => {
          throw new Error('failed', { cause })
        }),
  ),
  unit('a unit that rolls back without a word', /^a unit keeps/, ({ transaction }) => async (work) => {
    let result: unknown
    await transaction(async (inside) => {
      result = await work(inside)
      throw new Error('rolled back')
    }).catch(() => undefined)
    return result as never
  }),
  unit(
    'a unit without its deadline',
    /^a unit past its deadline/,
    ({ transaction }) =>
      (work) =>
        transaction(work),
  ),
]

function isAliveAt(found: SessionWithUser | null, at: Date): boolean {
  return found !== null && found.session.revokedAt === null && found.session.expiresAt > at
}
