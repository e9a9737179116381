import { withOwnMessage } from '../core/logger'
import type {
  AuthStore,
  EmailLoginStore,
  IdentityStore,
  InvitationStore,
  InvitationUseStore,
  PasskeyStore,
  SessionStore,
  SessionWithUser,
  TrustedDeviceStore,
  UserFilter,
  UserStore,
  UserTokenStore,
} from './auth-store'
import { meetsFilter } from './meets-filter'

/** Gets the name of a method, never a value from the database. */
export type ReportMismatch = (verb: string) => void

/** A database may treat 'ANA' and 'ana' as equal, or a value as a pattern (CVE-2022-39263). Reports a mismatch as not found. */
export function recheckedStore(store: AuthStore, report: ReportMismatch): AuthStore {
  const recheck = recheckWith(report)
  const { identities, recoveryCodes, passkeys, sessions, emailLogins, trustedDevices, invitations, invitationUses, outbox, leases } = store
  return {
    users: usersOf(store.users, recheck),
    userTokens: userTokensOf(store.userTokens, recheck),
    ...(identities && { identities: identitiesOf(identities, recheck) }),
    ...(recoveryCodes && { recoveryCodes }),
    ...(passkeys && { passkeys: passkeysOf(passkeys, recheck) }),
    ...(sessions && { sessions: sessionsOf(sessions, recheck) }),
    ...(emailLogins && { emailLogins: emailLoginsOf(emailLogins, recheck) }),
    ...(trustedDevices && { trustedDevices: trustedDevicesOf(trustedDevices, recheck) }),
    ...(invitations && { invitations: invitationsOf(invitations, recheck) }),
    ...(invitationUses && { invitationUses: invitationUsesOf(invitationUses, recheck) }),
    ...(outbox && { outbox }),
    ...(leases && { leases }),
    transaction: (work, options) => store.transaction((inside) => work(recheckedStore(inside, report)), options),
    ...(store.afterCommit && { afterCommit: (effect) => store.afterCommit?.(effect) }),
  }
}

interface Recheck {
  /** Reports a mismatch and returns null. */
  only<Row>(verb: string, row: Row | null, isAsked: (row: Row) => boolean): Row | null
  /** @throws Error if the returned row is not the row to insert */
  inserted<Row>(verb: string, row: Row, isAsked: (row: Row) => boolean): Row
}

function recheckWith(report: ReportMismatch): Recheck {
  return {
    only(verb, row, isAsked) {
      if (!row || isAsked(row)) return row
      report(verb)
      return null
    },
    inserted(verb, row, isAsked) {
      if (isAsked(row)) return row
      report(verb)
      throw withOwnMessage(new Error(`The store's ${verb} returned another row than the one to insert.`))
    },
  }
}

const none = Promise.resolve({ deleted: 0, held: 0 })

function usersOf(users: UserStore, { only, inserted }: Recheck): UserStore {
  return {
    fields: users.fields,
    ...(users.ids && { ids: users.ids }),
    ...(users.hostFields && { hostFields: users.hostFields }),
    find: async (id) => only('users.find', await users.find(id), (user) => user.id === id),
    findByEmail: async (email) => only('users.findByEmail', await users.findByEmail(email), (user) => user.email === email),
    // Compares the hash too. Otherwise, if an adapter returned an existing account, the new person would be logged in to that account.
    insert: async (user, origin) =>
      inserted(
        'users.insert',
        await users.insert(user, origin),
        (row) => row.email === user.email && row.hashedPassword === user.hashedPassword,
      ),
    update: (id, changes) => users.update(id, changes),
    recordLogin: async (seen, at, changes) =>
      only(
        'users.recordLogin',
        await users.recordLogin(seen, at, changes),
        (user) => user.id === seen.id && user.isActive && user.hashedPassword === (changes?.hashedPassword ?? seen.hashedPassword),
      ),
    ...(users.deleteAbandoned && { deleteAbandoned: (expired) => users.deleteAbandoned?.(expired) ?? none }),
    ...(users.delete && { delete: async (deletion) => (await users.delete?.(deletion)) === true }),
    ...(users.listDeletions && {
      listDeletions: async (due) =>
        ((await users.listDeletions?.(due)) ?? []).filter((row) => only('users.listDeletions', row, (user) => !user.isActive)),
    }),
    lock: async (id) => only('users.lock', await users.lock(id), (user) => user.id === id),
    advanceTotpStep: (id, step) => users.advanceTotpStep(id, step),
    async list(listing) {
      const { users: rows, next } = await users.list(listing)
      const filters = listing.filters.filter(isExact)
      return { users: rows.filter((row) => only('users.list', row, (user) => filters.every((filter) => meetsFilter(user, filter)))), next }
    },
    lockAdmins: async () =>
      (await users.lockAdmins()).filter((row) => only('users.lockAdmins', row, (user) => user.isAdmin && user.isActive)),
  }
}

/** A filter by an instant is not checked, because a host's column may store more digits than our record. */
function isExact({ value }: UserFilter): boolean {
  return ![value].flat().some((one) => one instanceof Date)
}

function identitiesOf(identities: IdentityStore, { only, inserted }: Recheck): IdentityStore {
  return {
    findWithUser: async (provider, subject) =>
      only(
        'identities.findWithUser',
        await identities.findWithUser(provider, subject),
        ({ identity, user }) =>
          identity.provider === provider && identity.subject === subject && (user === null || identity.userId === user.id),
      ),
    listForUser: async (userId) =>
      (await identities.listForUser(userId)).filter((row) => only('identities.listForUser', row, (identity) => identity.userId === userId)),
    insert: async (identity) =>
      inserted(
        'identities.insert',
        await identities.insert(identity),
        (row) => row.userId === identity.userId && row.provider === identity.provider && row.subject === identity.subject,
      ),
    recordLogin: async (link, at) =>
      only('identities.recordLogin', await identities.recordLogin(link, at), (user) => user.id === link.userId),
    deleteForUser: (userId, provider) => identities.deleteForUser(userId, provider),
  }
}

function passkeysOf(passkeys: PasskeyStore, { only, inserted }: Recheck): PasskeyStore {
  return {
    findWithUser: async (credentialId) =>
      only(
        'passkeys.findWithUser',
        await passkeys.findWithUser(credentialId),
        ({ passkey, user }) => passkey.credentialId === credentialId && (user === null || passkey.userId === user.id),
      ),
    listForUser: async (userId) =>
      (await passkeys.listForUser(userId)).filter((row) => only('passkeys.listForUser', row, (passkey) => passkey.userId === userId)),
    insert: async (passkey) =>
      inserted(
        'passkeys.insert',
        await passkeys.insert(passkey),
        (row) => row.userId === passkey.userId && row.credentialId === passkey.credentialId && row.publicKey === passkey.publicKey,
      ),
    recordUse: (use) => passkeys.recordUse(use),
    recordLogin: async (use, used) =>
      only('passkeys.recordLogin', await passkeys.recordLogin(use, used), (user) => user.id === use.userId && user.isActive),
    rename: (id, userId, name) => passkeys.rename(id, userId, name),
    deleteForUser: (userId, id) => passkeys.deleteForUser(userId, id),
    isPresent: async () => (await passkeys.isPresent?.()) ?? true,
  }
}

function userTokensOf(userTokens: UserTokenStore, { only }: Recheck): UserTokenStore {
  return {
    insert: (token) => userTokens.insert(token),
    find: async (tokenHash) => only('userTokens.find', await userTokens.find(tokenHash), (token) => token.tokenHash === tokenHash),
    consume: async (tokenHash, purpose, at) =>
      only(
        'userTokens.consume',
        await userTokens.consume(tokenHash, purpose, at),
        (token) => token.tokenHash === tokenHash && token.purpose === purpose,
      ),
    consumeAllForUser: (userId, at, purpose) => userTokens.consumeAllForUser(userId, at, purpose),
    listOpen: async (userId, purpose, at) =>
      (await userTokens.listOpen(userId, purpose, at)).filter((row) =>
        only('userTokens.listOpen', row, (token) => token.userId === userId && token.purpose === purpose),
      ),
    wasConsumed: (userId, purpose) => userTokens.wasConsumed(userId, purpose),
    deleteExpired: (expired) => userTokens.deleteExpired(expired),
  }
}

function sessionsOf(sessions: SessionStore, { only }: Recheck): SessionStore {
  return {
    insert: (session) => sessions.insert(session),
    ...(sessions.insertWithin && { insertWithin: async (session, most) => (await sessions.insertWithin?.(session, most)) ?? 0 }),
    find: async (wanted) =>
      only('sessions.find', await sessions.find(wanted), ({ session, user }) => meets(session, wanted) && session.userId === user.id),
    ...(sessions.findMany && {
      async findMany(ids) {
        const wanted = new Set(ids)
        const isAsked = ({ session, user }: SessionWithUser) => wanted.has(session.id) && session.userId === user.id
        return ((await sessions.findMany?.(ids)) ?? []).filter((row) => only('sessions.findMany', row, isAsked))
      },
    }),
    lock: async (id, at) => only('sessions.lock', await sessions.lock(id, at), (session) => session.id === id),
    rotate: async (rotation) => only('sessions.rotate', await sessions.rotate(rotation), ({ session, user }) => session.userId === user.id),
    update: (id, changes) => sessions.update(id, changes),
    touch: (id, seenBy, slid, tokenHash) => sessions.touch(id, seenBy, slid, tokenHash),
    listForUser: async (userId, at) =>
      (await sessions.listForUser(userId, at)).filter((row) => only('sessions.listForUser', row, (session) => session.userId === userId)),
    revoke: (wanted, at) => sessions.revoke(wanted, at),
    revokeForUser: (userId, at, choice) => sessions.revokeForUser(userId, at, choice),
    deleteExpired: (expired) => sessions.deleteExpired(expired),
  }
}

function emailLoginsOf(emailLogins: EmailLoginStore, { only }: Recheck): EmailLoginStore {
  return {
    ...(emailLogins.fields && { fields: emailLogins.fields }),
    ...(emailLogins.uncountTry && { uncountTry: (id) => emailLogins.uncountTry?.(id) ?? Promise.resolve() }),
    insert: (login) => emailLogins.insert(login),
    find: async (wanted) => only('emailLogins.find', await emailLogins.find(wanted), (login) => meets(login, wanted)),
    countTry: async (id, most, at) => only('emailLogins.countTry', await emailLogins.countTry(id, most, at), (login) => login.id === id),
    consume: (id, at) => emailLogins.consume(id, at),
    listOpen: async (email, at) =>
      (await emailLogins.listOpen(email, at)).filter((row) => only('emailLogins.listOpen', row, (login) => login.email === email)),
    consumeAllForEmail: (email, at) => emailLogins.consumeAllForEmail(email, at),
    deleteExpired: (expired) => emailLogins.deleteExpired(expired),
  }
}

function trustedDevicesOf(trustedDevices: TrustedDeviceStore, { only, inserted }: Recheck): TrustedDeviceStore {
  return {
    insert: async (device) =>
      inserted(
        'trustedDevices.insert',
        await trustedDevices.insert(device),
        (row) => row.userId === device.userId && row.tokenHash === device.tokenHash,
      ),
    find: async (tokenHash) =>
      only('trustedDevices.find', await trustedDevices.find(tokenHash), (device) => device.tokenHash === tokenHash),
    recordUse: (id, userId, use) => trustedDevices.recordUse(id, userId, use),
    listForUser: async (userId, at) =>
      (await trustedDevices.listForUser(userId, at)).filter((row) =>
        only('trustedDevices.listForUser', row, (device) => device.userId === userId),
      ),
    deleteForUser: (userId, choice) => trustedDevices.deleteForUser(userId, choice),
    deleteExpired: (expired) => trustedDevices.deleteExpired(expired),
    isPresent: async () => (await trustedDevices.isPresent?.()) ?? true,
  }
}

function invitationsOf(invitations: InvitationStore, { only, inserted }: Recheck): InvitationStore {
  return {
    insert: async (invitation) =>
      inserted('invitations.insert', await invitations.insert(invitation), (row) => row.tokenHash === invitation.tokenHash),
    find: async (wanted) => only('invitations.find', await invitations.find(wanted), (invitation) => meets(invitation, wanted)),
    list: (page) => invitations.list(page),
    listOpenMailed: async (email, at) =>
      (await invitations.listOpenMailed(email, at)).filter((row) =>
        only('invitations.listOpenMailed', row, (invitation) => invitation.email === email && invitation.isMailed),
      ),
    consume: async (id, at) => only('invitations.consume', await invitations.consume(id, at), (invitation) => invitation.id === id),
    replaceToken: (id, tokenHash, at) => invitations.replaceToken(id, tokenHash, at),
    revoke: (id, at) => invitations.revoke(id, at),
    deleteExpired: (expired) => invitations.deleteExpired(expired),
    isPresent: async () => (await invitations.isPresent?.()) ?? true,
  }
}

function invitationUsesOf(uses: InvitationUseStore, { only, inserted }: Recheck): InvitationUseStore {
  return {
    insert: async (use) =>
      inserted(
        'invitationUses.insert',
        await uses.insert(use),
        (row) => row.userId === use.userId && row.invitationId === use.invitationId,
      ),
    isUsedBy: (invitationId, userId) => uses.isUsedBy(invitationId, userId),
    ...(uses.listForUser && {
      listForUser: async (userId) =>
        ((await uses.listForUser?.(userId)) ?? []).filter((row) => only('invitationUses.listForUser', row, (use) => use.userId === userId)),
    }),
  }
}

function meets<Row extends object>(row: Row, wanted: Partial<Row>): boolean {
  return Object.entries(wanted).every(([field, value]) => row[field as keyof Row] === value) // `field` is a field of the row
}
