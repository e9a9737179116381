import { setTimeout as delay } from 'node:timers/promises'
import type { AuthEventPayloads, EventEmitter } from '../events'
import { describeError, type Logger } from '../logger'
import type { AuthMail, Mailer, MailRefusal } from '../mailer'

/** Takes mails and sees to them after the answer: a slow or failing mailer changes nothing a client can notice. */
export interface Postman {
  /**
   * Never throws. `userId`: whose account it is about, for observers and the log; the address stands in neither. `mayGo`
   * is asked once, before the first attempt: false, and the mail is dropped.
   */
  post(mail: AuthMail, userId: string, mayGo?: () => Promise<boolean>): void
}

type Failure = AuthEventPayloads['mail.failed']['reason']

/** Mails under way at once; what it bounds is memory while a mailer does not answer. */
const mostAtOnce = 1_000

/** How long one attempt may take. Whoever is later may have sent it all the same, so it is not repeated. */
const deadlineMs = 120_000

/** Before the second and the third attempt, after a mailer that said it did not send. */
const pausesMs = [1_000, 10_000]

export function createPostman({ mailer, events, logger }: { mailer: Mailer; events: EventEmitter; logger: Logger }): Postman {
  let underWay = 0

  function giveUp({ kind }: AuthMail, userId: string, reason: Failure, error: unknown = null): void {
    logger.error({ kind, userId, reason, error: error === null ? null : describeError(error) }, 'doorward: a mail was not sent')
    events.emit('mail.failed', { kind, userId, reason })
  }

  async function deliver(mail: AuthMail, userId: string): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      const outcome = await sendInTime(mailer, mail)
      if (outcome === 'sent') return
      if (outcome === 'late') return giveUp(mail, userId, 'late')
      const { outcome: known, retryable } = refusalOf(outcome.error)
      if (known === 'unknown') return giveUp(mail, userId, 'unknown', outcome.error)
      const pause = pausesMs[attempt]
      if (retryable === false || pause === undefined) return giveUp(mail, userId, 'refused', outcome.error)
      await delay(pause)
    }
  }

  async function deliverIfItMay(mail: AuthMail, userId: string, mayGo?: () => Promise<boolean>): Promise<void> {
    try {
      if (mayGo && !(await mayGo())) return
    } catch (error) {
      return giveUp(mail, userId, 'refused', error)
    }
    await deliver(mail, userId)
  }

  return {
    post(mail, userId, mayGo) {
      if (underWay >= mostAtOnce) return giveUp(mail, userId, 'too_many')
      underWay++
      void deliverIfItMay(Object.freeze({ ...mail }), userId, mayGo).finally(() => {
        underWay--
      })
    },
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
