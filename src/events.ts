import { createHmac } from 'node:crypto'
import type { AuthMethod } from './amr'
import type { Keys } from './keys'
import { describeError, type Logger } from './logger'
import type { AuthMail } from './mailer'

/** What an observer is told. Payloads carry ids and methods, never an email address, a token or a secret. */
export interface AuthEventPayloads {
  signup: { userId: string; by: 'pwd' | 'ext' | 'email' | 'command'; provider?: string }
  activation: { userId: string }
  login: { userId: string; amr: readonly AuthMethod[]; provider?: string }
  /** Right after `login`, and only with `newDeviceNotice`. */
  'login.new_device': { userId: string }
  'login.failed': {
    reason: string
    provider?: string
    /** Null: the login named no account that exists. */
    userId: string | null
    /** `eventDigest` of the email address; null: the login ended before it had one. */
    addressDigest: string | null
    /** The client's IP address, an IPv6 one as its /64; null: called without HTTP. */
    clientKey: string | null
  }
  /** Null: no account has the address. */
  'email_login.requested': { userId: string | null }
  challenge: { userId: string; amr: readonly AuthMethod[] }
  logout: { userId: string; allSessions: boolean }
  'refresh.reused': { userId: string; familyId: string }
  /**
   * `limit`: a login ended those unused longest, because of `maxSessionsPerUser`. `code_reused`: somebody showed the code of an app's login
   * again.
   */
  'session.revoked': { userId: string; count: number; reason?: 'limit' | 'code_reused' }
  'password.changed': { userId: string; by: 'reset' | 'change' }
  'email.verified': { userId: string }
  'email.changed': { userId: string }
  'identity.linked': { userId: string; provider: string }
  'identity.unlinked': { userId: string; provider: string }
  'mfa.enrolled': { userId: string }
  'mfa.disabled': { userId: string }
  'mfa.failed': { userId: string }
  'recovery_code.used': { userId: string }
  'passkey.added': { userId: string; passkeyId: string }
  'passkey.removed': { userId: string; passkeyId: string }
  /** Its signature was right and its counter was not ahead: there may be a copy of the authenticator. The login was refused. */
  'passkey.cloned': { userId: string; passkeyId: string }
  'account.deactivated': { userId: string }
  'admin.granted': { userId: string; actorId: string | null }
  'admin.revoked': { userId: string; actorId: string | null }
  /** By the command `users import`; nothing is told of the single accounts. */
  'users.imported': { count: number }
  'undo.used': { userId: string; addressRestored: boolean }
  'undo.conflict': { userId: string }
  'account.taken_over': { userId: string }
  throttled: {
    code: string
    route: string
    /** `eventDigest` of what was counted. */
    keyDigest: string
    retryAfterSeconds: number
  }
  'provider.failed': { provider: string; code: string; status: number | null }
  /** `userId` null: the address has no account. */
  'mail.failed': { userId: string | null; kind: AuthMail['kind']; reason: 'refused' | 'unknown' | 'late' | 'too_many' }
}

export type AuthEventName = keyof AuthEventPayloads

/** Every event and the fields of its payload: what is written down or counted is these and nothing beside them. */
export const eventFields: { readonly [Name in AuthEventName]: readonly (keyof AuthEventPayloads[Name])[] } = {
  signup: ['userId', 'by', 'provider'],
  activation: ['userId'],
  login: ['userId', 'amr', 'provider'],
  'login.new_device': ['userId'],
  'login.failed': ['reason', 'provider', 'userId', 'addressDigest', 'clientKey'],
  'email_login.requested': ['userId'],
  challenge: ['userId', 'amr'],
  logout: ['userId', 'allSessions'],
  'refresh.reused': ['userId', 'familyId'],
  'session.revoked': ['userId', 'count', 'reason'],
  'password.changed': ['userId', 'by'],
  'email.verified': ['userId'],
  'email.changed': ['userId'],
  'identity.linked': ['userId', 'provider'],
  'identity.unlinked': ['userId', 'provider'],
  'mfa.enrolled': ['userId'],
  'mfa.disabled': ['userId'],
  'mfa.failed': ['userId'],
  'recovery_code.used': ['userId'],
  'passkey.added': ['userId', 'passkeyId'],
  'passkey.removed': ['userId', 'passkeyId'],
  'passkey.cloned': ['userId', 'passkeyId'],
  'account.deactivated': ['userId'],
  'admin.granted': ['userId', 'actorId'],
  'admin.revoked': ['userId', 'actorId'],
  'users.imported': ['count'],
  'undo.used': ['userId', 'addressRestored'],
  'undo.conflict': ['userId'],
  'account.taken_over': ['userId'],
  throttled: ['code', 'route', 'keyDigest', 'retryAfterSeconds'],
  'provider.failed': ['provider', 'code', 'status'],
  'mail.failed': ['userId', 'kind', 'reason'],
}

export interface AuthEvents {
  /** Called after the operation has committed. A listener that throws or rejects is logged and changes nothing. */
  on<Name extends AuthEventName>(name: Name, listener: (payload: AuthEventPayloads[Name]) => unknown): () => void
}

export interface EventEmitter extends AuthEvents {
  emit<Name extends AuthEventName>(name: Name, payload: AuthEventPayloads[Name]): void
}

/**
 * Returns an HMAC-SHA256 in base64url, the same for the same text as long as `jwtSecret` stays. Observers can tell that two events are
 * about one address or one counter; without the secret nobody can try out addresses.
 */
export function eventDigest(keys: Keys, kind: 'address' | 'counter', text: string): string {
  return createHmac('sha256', keys['event-digest'][0]).update(`${kind}:${text}`).digest('base64url')
}

export function createEvents(logger: Logger): EventEmitter {
  const listeners = new Map<AuthEventName, Set<(payload: never) => unknown>>()
  return {
    on(name, listener) {
      const set = listeners.get(name) ?? new Set()
      listeners.set(name, set.add(listener))
      return () => set.delete(listener)
    },
    emit(name, payload) {
      for (const listener of listeners.get(name) ?? []) {
        // A promise chain of its own: neither a throw nor a rejection reaches the operation.
        Promise.resolve()
          .then(() => listener(payload as never))
          .catch((error: unknown) => logger.error({ event: name, error: describeError(error) }, 'doorward: an event listener failed'))
      }
    },
  }
}
