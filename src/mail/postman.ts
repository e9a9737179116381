import { setTimeout as delay } from 'node:timers/promises'
import type { AuthEventPayloads, EventEmitter } from '../events'
import { describeError, type Logger } from '../logger'
import type { AuthMail, Mailer, MailRefusal } from '../mailer'
import { seeTroubleshooting } from '../troubleshooting'

/** Sends mails after the response, so that a slow or failing mailer changes nothing that a client can notice. */
export interface Postman {
  /**
   * Queues a mail; never throws. `userId` is the account that events and the log name, or null if no account has the address. Neither
   * contains the address. `mayGo` is called once, before the first attempt: if it returns false, the mail is dropped.
   */
  post(mail: AuthMail, userId: string | null, mayGo?: () => Promise<boolean>): void
  /**
   * Reserves one mail that must be sent if a change happens; null if too many are reserved. Reservations have a limit of their own, so that
   * many other mails do not block a change.
   */
  reserve(): Place | null
  /** Ends every wait: pending retries start at once, and every later mail is tried only once. */
  hurry(): void
  /** Returns null if no mail is in progress; else resolves when all mails were sent or given up. */
  ended(): Promise<unknown> | null
}

/** A reservation for one mail. It is used once, or released. */
export interface Place {
  /** Sends the reserved mail; never throws. Sends nothing if the reservation was used or released before. */
  post(mail: AuthMail, userId: string | null): void
  /** Releases the reservation if it was not used. Does nothing if it is called again, or after `post`. */
  release(): void
}

type Failure = AuthEventPayloads['mail.failed']['reason']

/** Limit of mails in progress. It bounds the memory while a mailer does not respond. */
const mostAtOnce = 1_000

/** Limit of open reservations and of reserved mails in progress; it is separate from `mostAtOnce`. */
const mostPlaces = 1_000

/** How long one attempt may take. An attempt that takes longer is not repeated, because it may have sent the mail. */
const deadlineMs = 120_000

/** Pauses before the second and the third attempt, after the mailer reported that it did not send. */
const pausesMs = [1_000, 10_000]

export function createPostman({ mailer, events, logger }: { mailer: Mailer; events: EventEmitter; logger: Logger }): Postman {
  const underWay = new Set<Promise<void>>()
  const waiting = new Set<() => void>()
  const kept = new Set<Place>()
  /** Reserved mails in progress. */
  const inPlaces = new Set<Promise<void>>()
  let isHurried = false

  function giveUp({ kind }: AuthMail, userId: string | null, reason: Failure, error: unknown = null): void {
    logger.error(
      { kind, userId, reason, error: error === null ? null : describeError(error) },
      `doorward: a mail was not sent. ${seeTroubleshooting('a-mail-does-not-arrive')}`,
    )
    events.emit('mail.failed', { kind, userId, reason })
  }

  /** Waits, until `hurry` ends the wait. */
  function wait(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(end, isHurried ? 0 : milliseconds)
      waiting.add(end)
      function end(): void {
        clearTimeout(timer)
        waiting.delete(end)
        resolve()
      }
    })
  }

  async function deliver(mail: AuthMail, userId: string | null, { isOnlyOnce }: { isOnlyOnce: boolean }): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      const outcome = await sendInTime(mailer, mail)
      if (outcome === 'sent') return
      if (outcome === 'late') return giveUp(mail, userId, 'late')
      const { outcome: known, retryable } = refusalOf(outcome.error)
      if (known === 'unknown') return giveUp(mail, userId, 'unknown', outcome.error)
      const pause = pausesMs[attempt]
      if (retryable === false || pause === undefined || isOnlyOnce) return giveUp(mail, userId, 'refused', outcome.error)
      await wait(pause)
    }
  }

  async function deliverIfItMay(mail: AuthMail, userId: string | null, mayGo?: () => Promise<boolean>): Promise<void> {
    const isOnlyOnce = isHurried
    try {
      if (mayGo && !(await mayGo())) return
    } catch (error) {
      return giveUp(mail, userId, 'refused', error)
    }
    await deliver(mail, userId, { isOnlyOnce })
  }

  function begin(mail: AuthMail, userId: string | null, mayGo: (() => Promise<boolean>) | undefined, among: Set<Promise<void>>): void {
    const delivery = deliverIfItMay(Object.freeze({ ...mail }), userId, mayGo).finally(() => among.delete(delivery))
    among.add(delivery)
  }

  return {
    post(mail, userId, mayGo) {
      if (underWay.size >= mostAtOnce) return giveUp(mail, userId, 'too_many')
      begin(mail, userId, mayGo, underWay)
    },
    reserve() {
      if (kept.size + inPlaces.size >= mostPlaces) return null
      const place: Place = {
        post(mail, userId) {
          if (kept.delete(place)) begin(mail, userId, undefined, inPlaces)
        },
        release: () => void kept.delete(place),
      }
      kept.add(place)
      return place
    },
    hurry() {
      isHurried = true
      for (const end of waiting) end()
    },
    ended: () => (underWay.size + inPlaces.size === 0 ? null : Promise.all([...underWay, ...inPlaces])),
  }
}

/** Returns what the error says about a retry. Any value may be thrown, also one whose getter throws. */
function refusalOf(error: unknown): MailRefusal {
  try {
    const { retryable, outcome } = Object(error) as MailRefusal // any value: only compared with known ones
    return { retryable: retryable !== false, ...(outcome === 'unknown' && { outcome }) }
  } catch {
    return {}
  }
}

async function sendInTime(mailer: Mailer, mail: AuthMail): Promise<'sent' | 'late' | { error: unknown }> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), deadlineMs)
    timer.unref()
  })
  // After the response, because a mailer may run synchronous code before its first await.
  const sent = delay(0)
    .then(() => mailer.send(mail))
    .then(
      () => 'sent' as const,
      (error: unknown) => ({ error }),
    )
  try {
    return await Promise.race([sent, late])
  } finally {
    clearTimeout(timer)
  }
}
