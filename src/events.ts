import type { AuthMethod } from './amr'
import { describeError, type Logger } from './logger'
import type { AuthMail } from './mailer'

/** What an observer is told. Payloads carry ids and methods, never an address, a token or a secret. */
export interface AuthEventPayloads {
  signup: { userId: string; by: 'pwd' | 'ext'; provider?: string }
  activation: { userId: string }
  login: { userId: string; amr: readonly AuthMethod[]; provider?: string }
  'login.failed': { reason: string; provider?: string }
  challenge: { userId: string; amr: readonly AuthMethod[] }
  logout: { userId: string; allSessions: boolean }
  'refresh.reused': { userId: string; familyId: string }
  'session.revoked': { userId: string; count: number }
  'password.changed': { userId: string; by: 'reset' | 'change' }
  'email.verified': { userId: string }
  'email.changed': { userId: string }
  'identity.linked': { userId: string; provider: string }
  'identity.unlinked': { userId: string; provider: string }
  'mfa.enrolled': { userId: string }
  'mfa.disabled': { userId: string }
  'mfa.failed': { userId: string }
  'recovery_code.used': { userId: string }
  'account.deactivated': { userId: string }
  throttled: { code: string; route: string }
  'provider.failed': { provider: string; code: string; status: number | null }
  'mail.failed': { userId: string; kind: AuthMail['kind']; reason: 'refused' | 'unknown' | 'late' | 'too_many' }
}

export type AuthEventName = keyof AuthEventPayloads

/** Every event and the fields of its payload: what is written down or counted is these and nothing beside them. */
export const eventFields: { readonly [Name in AuthEventName]: readonly (keyof AuthEventPayloads[Name])[] } = {
  signup: ['userId', 'by', 'provider'],
  activation: ['userId'],
  login: ['userId', 'amr', 'provider'],
  'login.failed': ['reason', 'provider'],
  challenge: ['userId', 'amr'],
  logout: ['userId', 'allSessions'],
  'refresh.reused': ['userId', 'familyId'],
  'session.revoked': ['userId', 'count'],
  'password.changed': ['userId', 'by'],
  'email.verified': ['userId'],
  'email.changed': ['userId'],
  'identity.linked': ['userId', 'provider'],
  'identity.unlinked': ['userId', 'provider'],
  'mfa.enrolled': ['userId'],
  'mfa.disabled': ['userId'],
  'mfa.failed': ['userId'],
  'recovery_code.used': ['userId'],
  'account.deactivated': ['userId'],
  throttled: ['code', 'route'],
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
