import { randomUUID } from 'node:crypto'
import type { AuthEventName, AuthEventPayloads } from '../core/events'
import type { AuthStore, OutboxRecord } from '../store/auth-store'

/** The events that a row keeps until they are delivered: each is a change of an account. */
export const outboxEvents = [
  'signup',
  'activation',
  'password.changed',
  'password.expired',
  'email.verified',
  'email.changed',
  'identity.linked',
  'identity.unlinked',
  'mfa.enrolled',
  'mfa.disabled',
  'passkey.added',
  'passkey.removed',
  'admin.granted',
  'admin.revoked',
  'approval.requested',
  'approval.granted',
  'approval.declined',
  'invitation.accepted',
  'account.deactivated',
  'account.taken_over',
  'account.deletion_requested',
  'account.deletion_cancelled',
  'account.deleted',
  'undo.used',
  'undo.conflict',
] as const satisfies readonly AuthEventName[]

export type OutboxEventName = (typeof outboxEvents)[number]

/** An event that `deliver` hands to its handler. */
export type OutboxEvent = {
  [Name in OutboxEventName]: {
    /** A UUID. A repeated delivery has the same one. */
    readonly id: string
    readonly name: Name
    readonly payload: AuthEventPayloads[Name]
    /** When the event happened. */
    readonly createdAt: Date
  }
}[OutboxEventName]

export interface EmittedEvent {
  readonly name: AuthEventName
  readonly payload: AuthEventPayloads[AuthEventName]
}

/** Call it in the transaction that made the changes, while that holds the row of the user. One statement, or none. */
export async function writeOutbox({ outbox }: AuthStore, emitted: readonly EmittedEvent[], createdAt: Date): Promise<void> {
  const kept = emitted.filter(({ name }) => (outboxEvents as readonly string[]).includes(name))
  if (kept.length > 0) await outbox?.insert(kept.map((event) => rowOf(event, createdAt)))
}

function rowOf({ name, payload }: EmittedEvent, createdAt: Date): Parameters<NonNullable<AuthStore['outbox']>['insert']>[0][number] {
  const { userId } = payload as { userId: string } // of every event of the list
  return { id: randomUUID(), name, userId, payload: JSON.stringify(payload), createdAt }
}

export function eventOf({ id, name, payload, createdAt }: OutboxRecord): OutboxEvent {
  return { id, name, payload: JSON.parse(payload), createdAt } as OutboxEvent // as `writeOutbox` wrote it
}
