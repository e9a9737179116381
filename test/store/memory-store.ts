import { randomUUID } from 'node:crypto'
import { ServiceUnavailableError } from '../../src/errors'
import { inTime } from '../../src/in-time'
import {
  type AuthStore,
  type CompleteStore,
  DuplicateRecordError,
  type Expired,
  type IdentityRecord,
  type RecoveryCodeRecord,
  type RefreshTokenRecord,
  type SessionRecord,
  type UserRecord,
  type UserTokenRecord,
} from '../../src/store/auth-store'
import { meetsFilter } from '../../src/store/meets-filter'

/**
 * A second adapter, to see that the contract asks for nothing only knex can give. Every unit has the whole store for
 * itself, a verb outside a unit is a unit of its own, and a unit that fails leaves the rows it found.
 */
export function memoryStore(): CompleteStore {
  let rows: Rows = { users: [], identities: [], userTokens: [], refreshTokens: [], recoveryCodes: [], sessions: [] }
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
      )
      try {
        const result = await inTime(work(inside), deadlineMs, () => new ServiceUnavailableError())
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
  )
}

interface Rows {
  users: UserRecord[]
  identities: IdentityRecord[]
  userTokens: UserTokenRecord[]
  refreshTokens: RefreshTokenRecord[]
  recoveryCodes: RecoveryCodeRecord[]
  sessions: SessionRecord[]
}

/** Runs a verb on the rows; a verb checks before it writes, so that alone it is all or nothing. */
type Perform = <T>(verb: (rows: Rows) => T) => Promise<T>

function storeOn(perform: Perform, onFailure: (error: unknown) => void, transaction: AuthStore['transaction']): CompleteStore {
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
      find: (id) => run(({ users }) => users.find((user) => user.id === id) ?? null),
      findByEmail: (email) => run(({ users }) => users.find((user) => user.email === email) ?? null),
      lock: (id) => run(({ users }) => users.find((user) => user.id === id) ?? null),
      insert: (user) => run(({ users }) => add(users, { ...user, id: randomUUID() }, ['email'])),
      update: (id, changes) =>
        run(({ users }) => {
          const user = users.find((candidate) => candidate.id === id)
          if (!user) return false
          refuseDuplicate(users, { ...user, ...changes }, ['email'])
          Object.assign(user, structuredClone(changes))
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
          const open = userTokens.filter(
            (token) => token.userId === userId && !token.usedAt && token.purpose === (purpose ?? token.purpose),
          )
          for (const token of open) {
            token.usedAt = at
            if (token.expiresAt > at) token.expiresAt = at
          }
          return open.length
        }),
      wasConsumed: (userId, purpose) =>
        run(({ userTokens }) =>
          userTokens.some(
            (token) => token.userId === userId && token.purpose === purpose && token.usedAt && token.usedAt < token.expiresAt,
          ),
        ),
      deleteExpired: (expired) => run(({ userTokens }) => removeEnded(userTokens, (token) => token.expiresAt, expired)),
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

    refreshTokens: {
      insert: (token) => run(({ refreshTokens }) => void add(refreshTokens, token, ['tokenHash'])),
      find: (tokenHash) => run(({ refreshTokens }) => refreshTokens.find((token) => token.tokenHash === tokenHash) ?? null),
      findWithSuccessor: (tokenHash) =>
        run(({ refreshTokens, users }) => {
          const token = refreshTokens.find((candidate) => candidate.tokenHash === tokenHash)
          const user = users.find(({ id }) => id === token?.userId)
          const successor = refreshTokens.find(({ parentId }) => parentId !== null && parentId === token?.id) ?? null
          return token && user ? { token, successor, user } : null
        }),
      rotate: ({ tokenHash, child, childExpiresAt, at }) =>
        run(({ refreshTokens, users }) => {
          const parent = refreshTokens.find((token) => token.tokenHash === tokenHash)
          const user = users.find(({ id }) => id === parent?.userId)
          if (!parent || !user?.isActive || parent.usedAt || parent.revokedAt) return null
          if (parent.expiresAt <= at || parent.familyExpiresAt <= at) return null
          const expiresAt = new Date(Math.min(childExpiresAt.getTime(), parent.familyExpiresAt.getTime()))
          const token = add(refreshTokens, { ...parent, ...child, parentId: parent.id, expiresAt, createdAt: at }, ['tokenHash'])
          parent.usedAt = at
          return { token, user }
        }),
      hasLiveFamily: (userId, { from, before }, at) =>
        run(({ refreshTokens }) =>
          refreshTokens.some(
            (token) =>
              token.userId === userId &&
              !token.revokedAt &&
              token.createdAt >= from &&
              token.createdAt < before &&
              token.familyExpiresAt > at,
          ),
        ),
      revokeFamily: (familyId, at) => run(({ refreshTokens }) => revoke(refreshTokens, (token) => token.familyId === familyId, at)),
      revokeForUser: (userId, at, { exceptFamilyId } = {}) =>
        run(({ refreshTokens }) => revoke(refreshTokens, (token) => token.userId === userId && token.familyId !== exceptFamilyId, at)),
      deleteExpired: (expired) => run(({ refreshTokens }) => removeEnded(refreshTokens, (token) => token.familyExpiresAt, expired)),
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

    sessions: {
      insert: (session) => run(({ sessions }) => void add(sessions, session, ['sessionHash'])),
      findWithUser: (sessionHash) =>
        run(({ sessions, users }) => {
          const session = sessions.find((candidate) => candidate.sessionHash === sessionHash)
          const user = users.find(({ id }) => id === session?.userId)
          return session && user ? { session, user } : null
        }),
      touch: (id, seenBy, slid) =>
        run(({ sessions }) => {
          const session = sessions.find((candidate) => candidate.id === id && candidate.lastSeenAt <= seenBy)
          if (session) Object.assign(session, slid)
          return session !== undefined
        }),
      listForUser: (userId) => run(({ sessions }) => oldestFirst(sessions.filter((session) => session.userId === userId))),
      delete: (userId, id) => run(({ sessions }) => remove(sessions, (session) => session.userId === userId && session.id === id) === 1),
      deleteForUser: (userId, { exceptId } = {}) =>
        run(({ sessions }) => remove(sessions, (session) => session.userId === userId && session.id !== exceptId)),
      deleteExpired: (expired) => run(({ sessions }) => removeEnded(sessions, (session) => session.expiresAt, expired)),
    },
  }
  return store
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

function revoke(table: readonly RefreshTokenRecord[], wanted: (token: RefreshTokenRecord) => boolean, at: Date): number {
  const open = table.filter((token) => wanted(token) && !token.revokedAt)
  for (const token of open) token.revokedAt = at
  return open.filter((token) => !token.usedAt && token.expiresAt > at).length
}

function oldestFirst<R extends { id: string; createdAt: Date }>(records: readonly R[]): R[] {
  return records.toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime() || (one.id < other.id ? -1 : 1))
}
