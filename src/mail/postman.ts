import { setTimeout as delay } from 'node:timers/promises'
import type { AuthEventPayloads, EventEmitter } from '../events'
import { describeError, type Logger } from '../logger'
import type { AuthMail, Mailer, MailRefusal } from '../mailer'
import { seeTroubleshooting } from '../troubleshooting'

/** Takes mails and sees to them after the answer: a slow or failing mailer changes nothing a client can notice. */
export interface Postman {
  /**
   * Never throws. `userId`: whose account it is about, for observers and the log; the address stands in neither. Null: no account has the address. `mayGo`
   * is asked once, before the first attempt: false, and the mail is dropped.
   */
  post(mail: AuthMail, userId: string | null, mayGo?: () => Promise<boolean>): void
  /**
   * Keeps room for one mail that must go out if a change happens; null when there is none. Places are counted apart from other
   * mails, so that a crowd of those refuses no change.
   */
  reserve(): Place | null
  /** Waits no more: what is to be tried again is tried at once, and each mail from now on is tried once only. */
  hurry(): void
  /** Null: no mail is under way; else resolves when all of them are sent or given up. */
  ended(): Promise<unknown> | null
}

/** Room for one mail. It is used once, or given back. */
export interface Place {
  /** Sends the mail in this place; never throws. A place that was used or released before sends nothing. */
  post(mail: AuthMail, userId: string | null): void
  /** Gives the place back, if no mail was posted in it. Calling it again, or after `post`, changes nothing. */
  release(): void
}

type Failure = AuthEventPayloads['mail.failed']['reason']

/** Mails under way at once; what it bounds is memory while a mailer does not answer. */
const mostAtOnce = 1_000

/** Places that are kept or whose mail is under way, beside those mails. */
const mostPlaces = 1_000

/** How long one attempt may take. Whoever is later may have sent it all the same, so it is not repeated. */
const deadlineMs = 120_000

/** Before the second and the third attempt, after a mailer that said it did not send. */
const pausesMs = [1_000, 10_000]

export function createPostman({ mailer, events, logger }: { mailer: Mailer; events: EventEmitter; logger: Logger }): Postman {
  const underWay = new Set<Promise<void>>()
  const waiting = new Set<() => void>()
  const kept = new Set<Place>()
  /** Mails that were posted in a place. */
  const inPlaces = new Set<Promise<void>>()
  let isHurried = false

  function giveUp({ kind }: AuthMail, userId: string | null, reason: Failure, error: unknown = null): void {
    logger.error(
      { kind, userId, reason, error: error === null ? null : describeError(error) },
      `doorward: a mail was not sent. ${seeTroubleshooting('a-mail-does-not-arrive')}`,
    )
    events.emit('mail.failed', { kind, userId, reason })
  }

  /** Cut short by `hurry`. */
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

/** What the error says about itself; anything may be thrown, a getter that throws included. */
function refusalOf(error: unknown): MailRefusal {
  try {
    const { retryable, outcome } = Object(error) as MailRefusal // only compared with what it may be
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
  // Not before the answer: a mailer may work for a while before its first await.
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
