import type { AuthStore, SessionStore } from '../store/auth-store'
import { copyWith } from '../store/knex/knex-store'

/** Which sessions may have ended. Only a hint to read their rows: the transaction may have been rolled back. */
export type EndedSessions = { readonly ids: readonly string[] } | { readonly userId: string }

export interface SessionEnds {
  tell(ended: EndedSessions): void
  /** Replaces the listener. */
  listen(listener: (ended: EndedSessions) => void): void
}

export function createSessionEnds(): SessionEnds {
  let listener = (_ended: EndedSessions): void => undefined
  return {
    tell: (ended) => listener(ended),
    listen: (given) => {
      listener = given
    },
  }
}

/** Returns a store that tells which sessions it may have ended, after the commit. */
export function announcingEnds(store: AuthStore, { tell }: SessionEnds): AuthStore {
  return announcing(store, (ended) => (store.afterCommit ? store.afterCommit(() => tell(ended)) : tell(ended)))
}

type Tell = SessionEnds['tell']

function announcing(store: AuthStore, tell: Tell): AuthStore {
  const transaction: AuthStore['transaction'] = async (work, options) => {
    const ended: EndedSessions[] = []
    try {
      return await store.transaction((inside) => work(announcing(inside, (one) => void ended.push(one))), options)
    } finally {
      for (const one of ended) tell(one) // also after an error, because a COMMIT without an answer may have succeeded
    }
  }
  return copyWith(store, { transaction, ...(store.sessions && { sessions: announcingSessions(store.sessions, tell) }) })
}

function announcingSessions(sessions: SessionStore, tell: Tell): SessionStore {
  const { insertWithin } = sessions
  return {
    ...sessions,
    ...(insertWithin && {
      async insertWithin(session, most) {
        const revoked = await insertWithin(session, most)
        if (revoked > 0) tell({ userId: session.userId })
        return revoked
      },
    }),
    async revoke(wanted, at) {
      const isRevoked = await sessions.revoke(wanted, at)
      tell({ ids: [wanted.id].flat() })
      return isRevoked
    },
    async revokeForUser(userId, at, choice) {
      const revoked = await sessions.revokeForUser(userId, at, choice)
      tell({ userId })
      return revoked
    },
  }
}
