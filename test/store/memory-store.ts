import { randomUUID } from 'node:crypto'
import { ServiceUnavailableError, ValidationError } from '../../src/core/errors'
import { withTimeout } from '../../src/core/with-timeout'
import {
  type AuthStore,
  type CompleteStore,
  DuplicateRecordError,
  type EmailLoginRecord,
  type Expired,
  type HostFields,
  type IdentityRecord,
  type InvitationRecord,
  type InvitationUseRecord,
  type LeaseRecord,
  type OutboxRecord,
  type PasskeyRecord,
  type PasskeyUse,
  type RecoveryCodeRecord,
  type SessionChoice,
  type SessionRecord,
  type TrustedDeviceRecord,
  type UserRecord,
  type UserStore,
  type UserTokenRecord,
} from '../../src/store/auth-store'
import { meetsFilter } from '../../src/store/meets-filter'

/**
 * A second adapter, to see that the contract asks for nothing only knex can give. Every unit has the whole store for
 * itself, a verb outside a unit is a unit of its own, and a unit that fails leaves the rows it found.
 */
export function memoryStore(hostFields?: UserStore['hostFields']): CompleteStore {
  let rows: Rows = {
    users: [],
    identities: [],
    userTokens: [],
    recoveryCodes: [],
    passkeys: [],
    sessions: [],
    emailLogins: [],
    trustedDevices: [],
    invitations: [],
    invitationUses: [],
    outbox: [],
    leases: [],
  }
  let last: Promise<unknown> = Promise.resolve()

  const alone = <T>(work: () => Promise<T>): Promise<T> => {
    const run = last.then(work, work)
    last = run.catch(() => {})
    return run
  }

  const unit: AuthStore['transaction'] = (work, { deadlineMs = 60_000 } = {}) =>
    alone(async () => {
      const before = structuredClone(rows)
      const failures: unknown[] = []
      let isOver = false
      const inside = storeOn(
        async (verb) => {
          if (isOver) throw new Error('too late')
          return verb(rows)
        },
        (error) => failures.push(error),
        (work) => work(inside),
        hostFields,
      )
      try {
        const result = await withTimeout(work(inside), deadlineMs, () => new ServiceUnavailableError())
        if (failures.length > 0) throw failures[0]
        return result
      } catch (error) {
        rows = before
        throw error
      } finally {
        isOver = true
      }
    })

  return storeOn(
    (verb) => alone(async () => verb(rows)),
    () => {},
    unit,
    hostFields,
  )
}

function isAsSeen(passkey: PasskeyRecord, { id, userId, seenCount }: PasskeyUse): boolean {
  return passkey.id === id && passkey.userId === userId && passkey.signCount === seenCount
}

function writeUse(passkey: PasskeyRecord, { signCount, isBackedUp, at }: PasskeyUse): void {
  Object.assign(passkey, { signCount, isBackedUp, lastUsedAt: at })
}

interface Rows {
  users: UserRecord[]
  identities: IdentityRecord[]
  userTokens: UserTokenRecord[]
  recoveryCodes: RecoveryCodeRecord[]
  passkeys: PasskeyRecord[]
  sessions: SessionRecord[]
  emailLogins: EmailLoginRecord[]
  trustedDevices: TrustedDeviceRecord[]
  invitations: InvitationRecord[]
  invitationUses: InvitationUseRecord[]
  outbox: OutboxRecord[]
  leases: LeaseRecord[]
}

/** Runs a verb on the rows; a verb checks before it writes, so that alone it is all or nothing. */
type Perform = <T>(verb: (rows: Rows) => T) => Promise<T>

function storeOn(
  perform: Perform,
  onFailure: (error: unknown) => void,
  transaction: AuthStore['transaction'],
  hostFields: UserStore['hostFields'],
): CompleteStore {
  /** Refuses what is no field of the host, or no single value. */
  const checked = (fields: HostFields = {}): HostFields => {
    const bad = Object.entries(fields).filter(([name, value]) => !hostFields?.has(name) || (typeof value === 'object' && value !== null))
    if (bad.length > 0)
      throw new ValidationError({ details: { errors: bad.map(([name]) => ({ path: `fields.${name}`, rule: 'unstorable' })) } })
    return fields
  }
  const allFields = (fields?: HostFields): { fields?: HostFields } =>
    hostFields ? { fields: { ...Object.fromEntries([...hostFields.keys()].map((name) => [name, null])), ...checked(fields) } } : {}

  const run: Perform = async (verb) => {
    try {
      return structuredClone(await perform(verb))
    } catch (error) {
      onFailure(error)
      throw error
    }
  }

  const store: CompleteStore = {
    transaction,

    users: {
      fields: new Set(USER_FIELDS),
      ...(hostFields && { hostFields }),
      find: (id) => run(({ users }) => users.find((user) => user.id === id) ?? null),
      findByEmail: (email) => run(({ users }) => users.find((user) => user.email === email) ?? null),
      lock: (id) => run(({ users }) => users.find((user) => user.id === id) ?? null),
      insert: (user) => run(({ users }) => add(users, { ...user, ...allFields(user.fields), id: randomUUID() }, ['email'])),
      update: (id, changes) =>
        run(({ users }) => {
          const user = users.find((candidate) => candidate.id === id)
          if (!user) return false
          refuseDuplicate(users, { ...user, ...changes }, ['email'])
          const fields = { ...user.fields, ...checked(changes.fields) }
          Object.assign(user, structuredClone(changes), hostFields && { fields })
          return true
        }),
      recordLogin: ({ id, hashedPassword }, at, changes = {}) =>
        run(({ users }) => {
          const user = users.find((candidate) => candidate.id === id && candidate.isActive && candidate.hashedPassword === hashedPassword)
          if (!user) return null
          user.lastLoginAt = at
          user.hashedPassword = changes.hashedPassword ?? hashedPassword
          return user
        }),
      advanceTotpStep: (id, step) =>
        run(({ users }) => {
          const user = users.find((candidate) => candidate.id === id)
          if (!user || !Number.isSafeInteger(step) || (user.totpLastStep ?? -1) >= step) return false
          user.totpLastStep = step
          return true
        }),
      list: ({ filters, after, limit }) =>
        run(({ users }) => {
          const found = oldestFirst(users.filter((user) => filters.every((filter) => meetsFilter(user, filter))))
          const rest = after === null ? found : found.filter((user) => positionOf(user) > after)
          const page = rest.slice(0, limit)
          const last = page.at(-1)
          return { users: page, next: last && rest.length > limit ? positionOf(last) : null }
        }),
      delete: ({ id, addresses, invited, at, requestedBy }) =>
        run((rows) => {
          const user = rows.users.find((candidate) => candidate.id === id)
          const isDue = !user?.isActive && user?.deletionRequestedAt && requestedBy && user.deletionRequestedAt <= requestedBy
          if (!user || (requestedBy && !isDue)) return false
          const hashes = rows.userTokens.filter((token) => token.userId === id).map(({ tokenHash }) => tokenHash)
          remove(rows.emailLogins, ({ email, tokenHash }) => addresses.includes(email) || hashes.includes(tokenHash ?? ''))
          for (const invitation of rows.invitations) {
            if (invitation.createdBy === id) invitation.createdBy = null
            if (invitation.email === null || !invited.includes(invitation.email)) continue
            invitation.email = null
            invitation.revokedAt ??= at
          }
          const { identities, userTokens, recoveryCodes, passkeys, sessions, trustedDevices, invitationUses } = rows
          const isTheirs = ({ userId }: { userId: string }) => userId === id
          for (const table of [identities, userTokens, recoveryCodes, passkeys, sessions, trustedDevices, invitationUses])
            remove(table as { id: string; userId: string }[], isTheirs)
          return remove(rows.users, (candidate) => candidate === user) === 1
        }),
      listDeletions: ({ by, after, most }) =>
        run(({ users }) => {
          const key = ({ id, deletionRequestedAt }: Pick<UserRecord, 'id' | 'deletionRequestedAt'>) =>
            `${String((deletionRequestedAt?.getTime() ?? 0) + 1e14).padStart(16, '0')} ${id}`
          return users
            .filter((user) => !user.isActive && user.deletionRequestedAt && user.deletionRequestedAt <= by)
            .filter((user) => after === null || key(user) > key(after))
            .sort((one, other) => (key(one) < key(other) ? -1 : 1))
            .slice(0, most)
        }),
      lockAdmins: () =>
        run(({ users }) => users.filter((user) => user.isAdmin && user.isActive).sort((one, other) => (one.id < other.id ? -1 : 1))),
    },

    userTokens: {
      insert: (token) => run(({ userTokens }) => add(userTokens, { ...token, id: randomUUID() }, ['tokenHash'])),
      find: (tokenHash) => run(({ userTokens }) => userTokens.find((token) => token.tokenHash === tokenHash) ?? null),
      consume: (tokenHash, purpose, at) =>
        run(({ userTokens }) => {
          const token = userTokens.find((candidate) => candidate.tokenHash === tokenHash && candidate.purpose === purpose)
          if (!token || token.usedAt || token.expiresAt <= at) return null
          token.usedAt = at
          return token
        }),
      consumeAllForUser: (userId, at, purpose) =>
        run(({ userTokens }) => {
          const isMeant = (token: UserTokenRecord) =>
            purpose === undefined ? token.purpose !== 'UNDO' : [purpose].flat().includes(token.purpose)
          const open = userTokens.filter((token) => token.userId === userId && !token.usedAt && isMeant(token))
          for (const token of open) {
            token.usedAt = at
            if (token.expiresAt > at) token.expiresAt = at
          }
          return open.length
        }),
      listOpen: (userId, purpose, at) =>
        run(({ userTokens }) =>
          userTokens
            .filter((token) => token.userId === userId && token.purpose === purpose && !token.usedAt && token.expiresAt > at)
            .sort((one, other) => one.createdAt.getTime() - other.createdAt.getTime()),
        ),
      wasConsumed: (userId, purpose) =>
        run(({ userTokens }) =>
          userTokens.some(
            (token) => token.userId === userId && token.purpose === purpose && token.usedAt && token.usedAt < token.expiresAt,
          ),
        ),
      deleteExpired: (expired) =>
        run(({ userTokens }) => removeEnded(userTokens, (token) => (namesInvitation(token) ? NEVER : token.expiresAt), expired)),
    },

    identities: {
      findWithUser: (provider, subject) =>
        run(({ identities, users }) => {
          const identity = identities.find((candidate) => candidate.provider === provider && candidate.subject === subject)
          const user = users.find(({ id }) => id === identity?.userId)
          return identity && user ? { identity, user } : null
        }),
      listForUser: (userId) => run(({ identities }) => oldestFirst(identities.filter((identity) => identity.userId === userId))),
      insert: (identity) =>
        run(({ identities }) => {
          refuseDuplicate(identities, { ...identity, id: '' }, ['userId', 'provider'])
          return add(identities, { ...identity, id: randomUUID() }, ['provider', 'subject'])
        }),
      recordLogin: ({ userId, provider, subject }, at) =>
        run(({ identities, users }) => {
          const user = users.find((candidate) => candidate.id === userId && candidate.isActive)
          const identity = identities.find(
            (candidate) => candidate.userId === userId && candidate.provider === provider && candidate.subject === subject,
          )
          if (!user || !identity) return null
          identity.lastLoginAt = at
          user.lastLoginAt = at
          return user
        }),
      deleteForUser: (userId, provider) =>
        run(({ identities }) =>
          remove(identities, (identity) => identity.userId === userId && identity.provider === (provider ?? identity.provider)),
        ),
    },

    recoveryCodes: {
      replaceForUser: (userId, codeHashes) =>
        run(({ recoveryCodes }) => {
          remove(recoveryCodes, (code) => code.userId === userId)
          for (const codeHash of codeHashes) recoveryCodes.push({ id: randomUUID(), userId, codeHash, usedAt: null })
        }),
      consume: (userId, codeHash, at) =>
        run(({ recoveryCodes }) => {
          const code = recoveryCodes.find((candidate) => candidate.userId === userId && candidate.codeHash === codeHash)
          if (!code || code.usedAt) return false
          code.usedAt = at
          return true
        }),
      deleteForUser: (userId) => run(({ recoveryCodes }) => remove(recoveryCodes, (code) => code.userId === userId)),
    },

    passkeys: {
      findWithUser: (credentialId) =>
        run(({ passkeys, users }) => {
          const passkey = passkeys.find((candidate) => candidate.credentialId === credentialId)
          const user = users.find(({ id }) => id === passkey?.userId)
          return passkey && user ? { passkey, user } : null
        }),
      listForUser: (userId) => run(({ passkeys }) => oldestFirst(passkeys.filter((passkey) => passkey.userId === userId))),
      insert: (passkey) => run(({ passkeys }) => add(passkeys, { ...passkey, id: randomUUID() }, ['credentialId'])),
      recordUse: (use) =>
        run(({ passkeys }) => {
          const passkey = passkeys.find((candidate) => isAsSeen(candidate, use))
          if (passkey) writeUse(passkey, use)
          return passkey !== undefined
        }),
      recordLogin: (use, used) =>
        run(({ passkeys, users, userTokens }) => {
          const user = users.find((candidate) => candidate.id === use.userId && candidate.isActive)
          const passkey = passkeys.find((candidate) => isAsSeen(candidate, use))
          if (!user || !passkey) return null
          add(userTokens, { ...used, id: randomUUID() }, ['tokenHash'])
          writeUse(passkey, use)
          user.lastLoginAt = use.at
          return user
        }),
      rename: (id, userId, name) =>
        run(({ passkeys }) => {
          const passkey = passkeys.find((candidate) => candidate.id === id && candidate.userId === userId)
          if (passkey) passkey.name = name
          return passkey !== undefined
        }),
      deleteForUser: (userId, id) =>
        run(({ passkeys }) => remove(passkeys, (passkey) => passkey.userId === userId && passkey.id === (id ?? passkey.id))),
    },

    sessions: {
      insert: (session) => run(({ sessions }) => void add(sessions, session, ['tokenHash'])),
      find: (wanted) =>
        run(({ sessions, users }) => {
          const session = sessions.find((candidate) => meets(candidate, wanted))
          const user = users.find(({ id }) => id === session?.userId)
          return session && user ? { session, user } : null
        }),
      findMany: (ids) =>
        run(({ sessions, users }) =>
          sessions.flatMap((session) => {
            const user = users.find(({ id }) => id === session.userId)
            return user && ids.includes(session.id) ? [{ session, user }] : []
          }),
        ),
      lock: (id, at) => run(({ sessions }) => sessions.find((session) => session.id === id && isAlive(session, at)) ?? null),
      rotate: ({ tokenHash, successorHash, generation, expiresAt, at }) =>
        run(({ sessions, users }) => {
          const session = sessions.find((candidate) => meets(candidate, { tokenHash, kind: 'tokens' }) && isAlive(candidate, at))
          const user = users.find(({ id }) => id === session?.userId)
          if (!session || !user?.isActive) return null
          refuseDuplicate(sessions, { ...session, tokenHash: successorHash }, ['tokenHash'])
          const end = new Date(Math.min(expiresAt.getTime(), session.endsAt.getTime()))
          Object.assign(session, { tokenHash: successorHash, generation, rotatedAt: at, lastSeenAt: at, expiresAt: end })
          return { session, user }
        }),
      update: (id, changes) =>
        run(({ sessions }) => {
          const session = sessions.find((candidate) => candidate.id === id && candidate.revokedAt === null)
          if (session) Object.assign(session, structuredClone(changes))
          return session !== undefined
        }),
      touch: (id, seenBy, slid, tokenHash) =>
        run(({ sessions }) => {
          const session = sessions.find(
            (candidate) =>
              candidate.id === id &&
              candidate.tokenHash === tokenHash &&
              isAlive(candidate, slid.lastSeenAt) &&
              candidate.lastSeenAt <= seenBy,
          )
          if (session) Object.assign(session, slid)
          return session !== undefined
        }),
      listForUser: (userId, at) =>
        run(({ sessions }) => oldestFirst(sessions.filter((session) => session.userId === userId && isAlive(session, at)))),
      revoke: ({ id, ...others }, at) =>
        run(({ sessions }) => revoke(sessions, (session) => [id].flat().includes(session.id) && meets(session, others), at) > 0),
      revokeForUser: (userId, at, { exceptId, ...openedBy } = {}) =>
        run(({ sessions }) =>
          revoke(sessions, (session) => session.userId === userId && session.id !== exceptId && isOpenedBy(session, openedBy), at),
        ),
      deleteExpired: (expired) =>
        run(({ sessions }) => removeEnded(sessions, ({ revokedAt, expiresAt }) => revokedAt ?? expiresAt, expired)),
    },

    emailLogins: {
      insert: (login) => run(({ emailLogins }) => void add(emailLogins, login, login.tokenHash === null ? ['id'] : ['tokenHash'])),
      find: (wanted) => run(({ emailLogins }) => emailLogins.find((login) => isWanted(login, wanted)) ?? null),
      uncountTry: (id) =>
        run(({ emailLogins }) => {
          const login = emailLogins.find((candidate) => candidate.id === id && candidate.usedAt === null && candidate.tries > 0)
          if (login) login.tries -= 1
        }),
      countTry: (id, most, at) =>
        run(({ emailLogins }) => {
          const login = emailLogins.find((candidate) => candidate.id === id && isOpen(candidate, at) && candidate.tries < most)
          if (login) login.tries += 1
          return login ?? null
        }),
      consume: (id, at) =>
        run(({ emailLogins }) => {
          const login = emailLogins.find((candidate) => candidate.id === id && isOpen(candidate, at))
          if (login) login.usedAt = at
          return login !== undefined
        }),
      listOpen: (email, at) =>
        run(({ emailLogins }) => oldestFirst(emailLogins.filter((login) => login.email === email && isOpen(login, at)))),
      consumeAllForEmail: (email, at) =>
        run(({ emailLogins }) => {
          const open = emailLogins.filter((login) => login.email === email && login.usedAt === null)
          for (const login of open) login.usedAt = at
          return open.length
        }),
      deleteExpired: (expired) => run(({ emailLogins }) => removeEnded(emailLogins, ({ expiresAt }) => expiresAt, expired)),
    },

    trustedDevices: {
      insert: (device) => run(({ trustedDevices }) => add(trustedDevices, { ...device, id: randomUUID() }, ['tokenHash'])),
      find: (tokenHash) => run(({ trustedDevices }) => trustedDevices.find((device) => device.tokenHash === tokenHash) ?? null),
      recordUse: (id, userId, use) =>
        run(({ trustedDevices }) => {
          const device = trustedDevices.find((candidate) => candidate.id === id && candidate.userId === userId)
          if (device) Object.assign(device, use)
          return device !== undefined
        }),
      listForUser: (userId, at) =>
        run(({ trustedDevices }) =>
          oldestFirst(trustedDevices.filter((device) => device.userId === userId && device.endsAt > at)).toReversed(),
        ),
      deleteForUser: (userId, { exceptTokenHash, ...choice } = {}) =>
        run(({ trustedDevices }) =>
          remove(trustedDevices, (device) => {
            const isChosen = Object.entries(choice).every(([field, value]) => device[field as keyof TrustedDeviceRecord] === value) // fields of it
            return device.userId === userId && isChosen && device.tokenHash !== exceptTokenHash
          }),
        ),
      deleteExpired: (expired) => run(({ trustedDevices }) => removeEnded(trustedDevices, ({ endsAt }) => endsAt, expired)),
    },

    invitations: {
      insert: (invitation) => run(({ invitations }) => add(invitations, { ...invitation, id: randomUUID() }, ['tokenHash'])),
      find: (wanted) =>
        run(
          ({ invitations }) =>
            invitations.find((invitation) =>
              Object.entries(wanted).every(([field, value]) => invitation[field as keyof InvitationRecord] === value),
            ) ?? null,
        ),
      list: ({ after, limit }) =>
        run(({ invitations }) => {
          const sorted = oldestFirst(invitations).toReversed()
          const isOlder = ({ createdAt, id }: InvitationRecord) =>
            after === null || createdAt < after.createdAt || (createdAt.getTime() === after.createdAt.getTime() && id < after.id)
          return sorted.filter(isOlder).slice(0, limit)
        }),
      listOpenMailed: (email, at) =>
        run(({ invitations }) =>
          oldestFirst(
            invitations.filter((invitation) => invitation.email === email && invitation.isMailed && isOpenInvitation(invitation, at)),
          ).slice(0, 100),
        ),
      consume: (id, at) =>
        run(({ invitations }) => {
          const invitation = invitations.find((candidate) => candidate.id === id && isOpenInvitation(candidate, at))
          if (invitation) invitation.usesLeft -= 1
          return invitation ?? null
        }),
      replaceToken: (id, tokenHash, at) =>
        run(({ invitations }) => {
          const invitation = invitations.find((candidate) => candidate.id === id && candidate.isMailed && isOpenInvitation(candidate, at))
          if (invitation) invitation.tokenHash = tokenHash
          return invitation !== undefined
        }),
      revoke: (id, at) =>
        run(({ invitations }) => {
          const invitation = invitations.find((candidate) => candidate.id === id && candidate.revokedAt === null)
          if (invitation) invitation.revokedAt = at
          return invitation !== undefined
        }),
      deleteExpired: (expired) =>
        run(({ invitations, invitationUses }) => {
          const count = removeEnded(invitations, ({ expiresAt }) => expiresAt, expired)
          remove(invitationUses, (use) => !invitations.some(({ id }) => id === use.invitationId))
          return count
        }),
    },

    invitationUses: {
      insert: (use) => run(({ invitationUses }) => add(invitationUses, { ...use, id: randomUUID() }, ['invitationId', 'userId'])),
      isUsedBy: (invitationId, userId) =>
        run(({ invitationUses }) => invitationUses.some((use) => use.invitationId === invitationId && use.userId === userId)),
    },
    outbox: {
      insert: (events) =>
        run(({ outbox }) => {
          for (const event of events) {
            const seq = lastSeq++
            add(outbox, { ...event, seq, tries: 0, nextAt: event.createdAt, leasedUntil: null, deliveredAt: null }, ['id'])
          }
        }),
      take: ({ now, until, most }) =>
        run(({ outbox }) => {
          const waiting = outbox.filter(({ deliveredAt }) => deliveredAt === null)
          const isOldest = ({ seq, userId }: OutboxRecord) =>
            userId === null || !waiting.some((other) => other.userId === userId && other.seq < seq)
          const free = waiting.filter(({ nextAt, leasedUntil }) => nextAt <= now && (leasedUntil === null || leasedUntil <= now))
          const taken = free.filter(isOldest).slice(0, most)
          for (const event of taken) event.leasedUntil = until
          return taken
        }),
      markDelivered: (id, at) => run(({ outbox }) => changeWaiting(outbox, { id }, () => ({ deliveredAt: at, leasedUntil: null }))),
      markFailed: ({ id, leasedUntil, nextAt }) =>
        run(({ outbox }) => {
          const isSame = (one: Date | null) => one?.getTime() === leasedUntil?.getTime()
          const held = outbox.find((event) => event.id === id && isSame(event.leasedUntil))
          return held !== undefined && changeWaiting(outbox, { id }, ({ tries }) => ({ tries: tries + 1, nextAt, leasedUntil: null }))
        }),
      discard: (id) => run(({ outbox }) => remove(outbox, (event) => event.id === id && event.deliveredAt === null) > 0),
      status: () =>
        run(({ outbox }) => {
          const waiting = outbox.filter(({ deliveredAt }) => deliveredAt === null)
          return {
            waiting: waiting.length,
            failing: waiting.filter(({ tries }) => tries > 0).length,
            oldestAt: waiting[0]?.createdAt ?? null,
          }
        }),
      deleteDelivered: ({ before, most }) =>
        run(({ outbox }) => {
          const ended = outbox.filter(({ deliveredAt }) => deliveredAt !== null && deliveredAt <= before).slice(0, most)
          return remove(outbox, (event) => ended.includes(event))
        }),
    },
    leases: {
      take: ({ id, holder, now, until, ranBefore }) =>
        run(({ leases }) => {
          const { leasedUntil, ranAt } = leaseOf(leases, id)
          const isFree = (leasedUntil === null || leasedUntil <= now) && (ranAt === null || ranAt <= ranBefore || ranAt > now)
          if (isFree) Object.assign(leaseOf(leases, id), { holder, leasedUntil: until })
          return isFree
        }),
      renew: ({ id, holder, until }) => run(({ leases }) => changeLease(leases, { id, holder }, until)),
      release: ({ id, holder }) => run(({ leases }) => void changeLease(leases, { id, holder }, null)),
      recordRun: (id, at) => run(({ leases }) => void Object.assign(leaseOf(leases, id), { ranAt: at })),
      find: (id) => run(({ leases }) => leases.find((lease) => lease.id === id) ?? null),
    },
  }
  return store
}

let lastSeq = 1

function leaseOf(leases: LeaseRecord[], id: string): LeaseRecord {
  const lease = leases.find((one) => one.id === id) ?? { id, holder: null, leasedUntil: null, ranAt: null }
  if (!leases.includes(lease)) leases.push(lease)
  return lease
}

function changeLease(leases: LeaseRecord[], { id, holder }: { id: string; holder: string }, leasedUntil: Date | null): boolean {
  const lease = leases.find((one) => one.id === id && one.holder === holder)
  if (lease) lease.leasedUntil = leasedUntil
  return lease !== undefined
}

function changeWaiting(outbox: OutboxRecord[], { id }: { id: string }, changes: (event: OutboxRecord) => Partial<OutboxRecord>): boolean {
  const event = outbox.find((candidate) => candidate.id === id && candidate.deliveredAt === null)
  if (event) Object.assign(event, changes(event))
  return event !== undefined
}

const positionOf = ({ createdAt, id }: UserRecord): string => `${String(createdAt.getTime() + 1e14).padStart(16, '0')} ${id}`

const USER_FIELDS: readonly (keyof UserRecord)[] = [
  'id',
  'isActive',
  'createdAt',
  'updatedAt',
  'email',
  'hashedPassword',
  'isAdmin',
  'lastLoginAt',
  'name',
  'totpSecret',
  'totpEnabledAt',
  'totpLastStep',
  'emailVerifiedAt',
  'activatedAt',
  'passwordSetAt',
]

function add<R extends { id: string }>(table: R[], record: R, unique: readonly (keyof R)[]): R {
  refuseDuplicate(table, record, unique)
  table.push(structuredClone(record))
  return record
}

function refuseDuplicate<R extends { id: string }>(table: readonly R[], record: R, unique: readonly (keyof R)[]): void {
  const twin = table.find((other) => other.id !== record.id && unique.every((field) => other[field] === record[field]))
  if (twin) throw new DuplicateRecordError('exists')
}

function remove<R>(table: R[], doomed: (record: R) => boolean): number {
  const kept = table.filter((record) => !doomed(record))
  return table.splice(0, table.length, ...kept).length - kept.length
}

function removeEnded<R>(table: R[], endOf: (record: R) => Date, { before, most }: Expired): number {
  const doomed = new Set(table.filter((record) => endOf(record) <= before).slice(0, most))
  return remove(table, (record) => doomed.has(record))
}

const NEVER = new Date(8.64e15)

function namesInvitation({ purpose, usedAt, payload }: UserTokenRecord): boolean {
  return purpose === 'ACTIVATION' && usedAt === null && payload?.includes('"invitation":"') === true
}

function meets(session: SessionRecord, wanted: Partial<SessionRecord>): boolean {
  return Object.entries(wanted).every(([field, value]) => session[field as keyof SessionRecord] === value) // fields of it
}

function isWanted(login: EmailLoginRecord, wanted: Partial<EmailLoginRecord>): boolean {
  return Object.entries(wanted).every(([field, value]) => login[field as keyof EmailLoginRecord] === value) // fields of it
}

function isOpen({ usedAt, expiresAt }: EmailLoginRecord, at: Date): boolean {
  return usedAt === null && expiresAt > at
}

function isOpenInvitation({ usesLeft, revokedAt, expiresAt }: InvitationRecord, at: Date): boolean {
  return usesLeft > 0 && revokedAt === null && expiresAt > at
}

function isAlive({ revokedAt, expiresAt }: SessionRecord, at: Date): boolean {
  return revokedAt === null && expiresAt > at
}

function isOpenedBy({ amr, provider }: SessionRecord, wanted: SessionChoice): boolean {
  const isByMethod = wanted.amr === undefined || amr.split(' ').includes(wanted.amr)
  return isByMethod && (wanted.provider === undefined || provider === wanted.provider)
}

function revoke(sessions: readonly SessionRecord[], wanted: (session: SessionRecord) => boolean, at: Date): number {
  const doomed = sessions.filter((session) => wanted(session) && session.revokedAt === null)
  for (const session of doomed) session.revokedAt = at
  return doomed.length
}

function oldestFirst<R extends { id: string; createdAt: Date }>(records: readonly R[]): R[] {
  return records.toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime() || (one.id < other.id ? -1 : 1))
}
