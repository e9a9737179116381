import { setTimeout as delay } from 'node:timers/promises'
import type { EventEmitter } from '../events'
import { describeError, type Logger } from '../logger'
import type { AuthMail, Mailer } from '../mailer'

/** Takes mails and sees to them after the answer: a slow or failing mailer changes nothing a client can notice. */
export interface Postman {
  /** `userId`: whose account it is about, for observers and the log; the address stands in neither. */
  post(mail: AuthMail, userId: string): void
}

/** Mails under way at once; what it bounds is memory while a mailer does not answer. */
const mostAtOnce = 1_000

/** How long one attempt may take. Whoever is later may have sent it all the same, so it is not repeated. */
const deadlineMs = 120_000

/** Before the second and the third attempt, after a mailer that said it did not send. */
const pausesMs = [1_000, 10_000]

export function createPostman({ mailer, events, logger }: { mailer: Mailer; events: EventEmitter; logger: Logger }): Postman {
  let underWay = 0

  function giveUp({ kind }: AuthMail, userId: string, reason: 'refused' | 'late' | 'too_many', error: unknown = null): void {
    logger.error({ kind, userId, reason, error: error === null ? null : describeError(error) }, 'doorward: a mail was not sent')
    events.emit('mail.failed', { kind, userId, reason })
  }

  async function deliver(mail: AuthMail, userId: string): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      const outcome = await sendInTime(mailer, mail)
      if (outcome === 'sent') return
      const pause = pausesMs[attempt]
      if (outcome === 'late') return giveUp(mail, userId, 'late')
      if (pause === undefined) return giveUp(mail, userId, 'refused', outcome.error)
      await delay(pause, undefined, { ref: false })
    }
  }

  return {
    post(mail, userId) {
      if (underWay >= mostAtOnce) return giveUp(mail, userId, 'too_many')
      underWay++
      void deliver(Object.freeze({ ...mail }), userId).finally(() => {
        underWay--
      })
    },
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
