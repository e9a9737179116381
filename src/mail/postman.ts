import { setTimeout as delay } from 'node:timers/promises'
import type { AuthEventPayloads, EventEmitter } from '../events'
import { describeError, type Logger } from '../logger'
import type { AuthMail, Mailer, MailRefusal } from '../mailer'
import { seeTroubleshooting } from '../troubleshooting'

/** Sends mails after the response, so that a client cannot notice a slow or failing mailer. */
export interface Postman {
  /**
   * Queues a mail. Never throws. `userId` is the account in the event and the log, or null if no account has the address. The event and the
   * log do not contain the address. `mayGo` is called once, before the first attempt. If `mayGo` returns false, the mail is dropped.
   */
  post(mail: AuthMail, userId: string | null, mayGo?: () => Promise<boolean>): void
  /**
   * Reserves a mail that must be sent if a change happens. Returns null if too many mails are reserved. Reservations have a separate limit,
   * so that many other mails cannot block a change.
   */
  reserve(): Place | null
  /** Ends every wait. Pending retries start at once, and every later mail is tried only once. */
  hurry(): void
  /** Returns null if no mail is in progress. Otherwise resolves when every mail was sent or given up. */
  ended(): Promise<unknown> | null
}

/** A reservation for one mail. The caller sends the mail or releases the reservation. */
export interface Place {
  /** Sends the reserved mail. Never throws. Does nothing if the reservation was already used or released. */
  post(mail: AuthMail, userId: string | null): void
  /** Releases the reservation. Does nothing if the reservation was already used or released. */
  release(): void
}

type Failure = AuthEventPayloads['mail.failed']['reason']

/** The most mails in progress. The limit bounds the memory while a mailer does not respond. */
const mostAtOnce = 1_000

/** The maximum number of reservations, open or with a mail in progress. This limit is separate from `mostAtOnce`. */
const mostPlaces = 1_000

/** The time limit of an attempt in milliseconds. A late attempt is not repeated, because the mailer may have sent the mail. */
const deadlineMs = 120_000

/**
 * Pauses in milliseconds before the second and the third attempt. The postman tries again only after an error of the mailer that has
 * neither `retryable: false` nor `outcome: 'unknown'`.
 */
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

  /** Waits for the time, or until `hurry` ends the wait. */
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

/** Returns what the error says about a retry. The mailer may throw any value, even a value with a getter that throws. */
function refusalOf(error: unknown): MailRefusal {
  try {
    const { retryable, outcome } = Object(error) as MailRefusal // any value; the code only compares its members
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
  // The timer delays the call until after the response, because a mailer may run synchronous code before its first await.
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
