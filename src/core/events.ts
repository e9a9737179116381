import { createHmac } from 'node:crypto'
import type { AuthMethod } from './amr'
import type { Keys } from './keys'
import { describeError, type Logger } from './logger'
import type { AuthMail } from './mailer'

/**
 * The events and their payloads. A payload contains ids and methods, and never an email address, a token or a secret. `actorId` is the
 * administrator who caused the event. Absent: the person, or your own code.
 */
export interface AuthEventPayloads {
  signup: { userId: string; by: 'pwd' | 'passkey' | 'ext' | 'email' | 'command'; provider?: string }
  /** Once a window of `throttle.signupMails`, at the first mail past it. `limit`: the mails of a window. */
  'signup.flood': { limit: number }
  activation: { userId: string; actorId?: string }
  login: { userId: string; amr: readonly AuthMethod[]; provider?: string }
  /** Emitted right after `login`, if `unknownDevice` is not `off`, or if a mailed code made the device known. */
  'login.new_device': { userId: string }
  /** Once a login: it proved its person, and owes these tasks before its session begins. */
  'task.required': { userId: string; tasks: readonly string[] }
  'task.done': { userId: string; task: string }
  'login.failed': {
    reason: string
    provider?: string
    /** Null: no account was found. */
    userId: string | null
    /** `eventDigest` of the email address. Null: the login failed before the address was known. */
    addressDigest: string | null
    /** The client's IP address. For IPv6, the client's /64 network. Null: the call came without HTTP. */
    clientKey: string | null
  }
  /** `userId` is null if no account has the address. */
  'email_login.requested': { userId: string | null }
  challenge: { userId: string; amr: readonly AuthMethod[] }
  logout: { userId: string; allSessions: boolean }
  'refresh.reused': { userId: string; familyId: string }
  /** `limit`: a login revoked the longest unused sessions (`maxSessionsPerUser`). `code_reused`: an app's login code was used again. */
  'session.revoked': { userId: string; count: number; reason?: 'limit' | 'code_reused'; actorId?: string }
  'password.changed': { userId: string; by: 'reset' | 'change' }
  /** `actorId` is null if no administrator asked for it. */
  'password.expired': { userId: string; actorId: string | null }
  'email.verified': { userId: string }
  'email.changed': { userId: string }
  'identity.linked': { userId: string; provider: string }
  'identity.unlinked': { userId: string; provider: string }
  'mfa.enrolled': { userId: string }
  'mfa.disabled': { userId: string; actorId?: string }
  'mfa.failed': { userId: string }
  'recovery_code.used': { userId: string }
  'passkey.added': { userId: string; passkeyId: string }
  'passkey.removed': { userId: string; passkeyId: string; actorId?: string }
  /** The signature was right but the counter did not increase, so an attacker may have copied the authenticator. The login was rejected. */
  'passkey.cloned': { userId: string; passkeyId: string }
  'device.trusted': { userId: string }
  /** Once for each trusted device that was deleted. */
  'device.untrusted': { userId: string; reason: 'removed' | 'session_ended' | 'account_changed'; actorId?: string }
  'account.deactivated': { userId: string; actorId?: string }
  /** An account waits for an administrator, in place of its `activation`. */
  'approval.requested': { userId: string }
  'approval.granted': { userId: string; actorId?: string }
  'approval.declined': { userId: string; actorId?: string }
  'admin.granted': { userId: string; actorId: string | null }
  'admin.revoked': { userId: string; actorId: string | null }
  /** Emitted by the command `users import`. The command emits no event per account. */
  'users.imported': { count: number; admins: number }
  /** A purge deleted so many rows, and did so many due deletions of accounts (`accounts`). It could not do `failed` deletions. */
  'purge.done': { rows: number; accounts: number; failed: number; durationMs: number }
  'invitation.created': { invitationId: string; actorId?: string }
  'invitation.revoked': { invitationId: string; actorId?: string }
  'invitation.accepted': { invitationId: string; userId: string }
  'undo.used': { userId: string; addressRestored: boolean }
  'undo.conflict': { userId: string }
  'account.taken_over': { userId: string }
  /** The account is closed, and will be deleted. */
  'account.deletion_requested': { userId: string; actorId?: string }
  'account.deletion_cancelled': { userId: string; actorId?: string }
  'account.deleted': { userId: string; actorId?: string }
  throttled: {
    code: string
    route: string
    /** `eventDigest` of the key that was counted. */
    keyDigest: string
    retryAfterSeconds: number
  }
  'provider.failed': { provider: string; code: string; status: number | null }
  /** `userId` is null if no account has the address. */
  'mail.failed': { userId: string | null; kind: AuthMail['kind']; reason: 'refused' | 'unknown' | 'late' | 'too_many' }
}

export type AuthEventName = keyof AuthEventPayloads

/** Observers store and count only these fields. */
export const eventFields: { readonly [Name in AuthEventName]: readonly (keyof AuthEventPayloads[Name])[] } = {
  signup: ['userId', 'by', 'provider'],
  'signup.flood': ['limit'],
  activation: ['userId', 'actorId'],
  login: ['userId', 'amr', 'provider'],
  'login.new_device': ['userId'],
  'task.required': ['userId', 'tasks'],
  'task.done': ['userId', 'task'],
  'login.failed': ['reason', 'provider', 'userId', 'addressDigest', 'clientKey'],
  'email_login.requested': ['userId'],
  challenge: ['userId', 'amr'],
  logout: ['userId', 'allSessions'],
  'refresh.reused': ['userId', 'familyId'],
  'session.revoked': ['userId', 'count', 'reason', 'actorId'],
  'password.changed': ['userId', 'by'],
  'password.expired': ['userId', 'actorId'],
  'email.verified': ['userId'],
  'email.changed': ['userId'],
  'identity.linked': ['userId', 'provider'],
  'identity.unlinked': ['userId', 'provider'],
  'mfa.enrolled': ['userId'],
  'mfa.disabled': ['userId', 'actorId'],
  'mfa.failed': ['userId'],
  'recovery_code.used': ['userId'],
  'passkey.added': ['userId', 'passkeyId'],
  'passkey.removed': ['userId', 'passkeyId', 'actorId'],
  'passkey.cloned': ['userId', 'passkeyId'],
  'device.trusted': ['userId'],
  'device.untrusted': ['userId', 'reason', 'actorId'],
  'account.deactivated': ['userId', 'actorId'],
  'approval.requested': ['userId'],
  'approval.granted': ['userId', 'actorId'],
  'approval.declined': ['userId', 'actorId'],
  'admin.granted': ['userId', 'actorId'],
  'admin.revoked': ['userId', 'actorId'],
  'users.imported': ['count', 'admins'],
  'purge.done': ['rows', 'accounts', 'failed', 'durationMs'],
  'invitation.created': ['invitationId', 'actorId'],
  'invitation.revoked': ['invitationId', 'actorId'],
  'invitation.accepted': ['invitationId', 'userId'],
  'undo.used': ['userId', 'addressRestored'],
  'undo.conflict': ['userId'],
  'account.taken_over': ['userId'],
  'account.deletion_requested': ['userId', 'actorId'],
  'account.deletion_cancelled': ['userId', 'actorId'],
  'account.deleted': ['userId', 'actorId'],
  throttled: ['code', 'route', 'keyDigest', 'retryAfterSeconds'],
  'provider.failed': ['provider', 'code', 'status'],
  'mail.failed': ['userId', 'kind', 'reason'],
}

export interface AuthEvents {
  /** Calls the listener after the operation has committed. Returns its removal. A listener's error is logged and affects no operation. */
  on<Name extends AuthEventName>(name: Name, listener: (payload: AuthEventPayloads[Name]) => unknown): () => void
}

export interface EventEmitter extends AuthEvents {
  emit<Name extends AuthEventName>(name: Name, payload: AuthEventPayloads[Name]): void
}

/** Observers can relate events about one address or counter. Without `jwtSecret`, they cannot test guesses. */
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
        // The listener runs inside a promise chain. If the listener throws or rejects, the operation is not affected.
        Promise.resolve()
          .then(() => listener(payload as never))
          .catch((error: unknown) => logger.error({ event: name, error: describeError(error) }, 'doorward: an event listener failed'))
      }
    },
  }
}
