import type { AuthMail, Mailer } from 'doorward'
import express, { type Router } from 'express'
import { languageOf } from '../language'
import { outboxPage } from './page'

export interface Outbox {
  /** What the library is given. A real app's mailer hands the mail to SMTP or a mail service here. */
  mailer: Mailer
  /** A page with the mails that were "sent", for development: whoever can open it can take over every account. */
  router: Router
}

export interface SentMail extends AuthMail {
  sentAt: Date
}

const mostKept = 50

/** The library mails up to two seconds after its answer, so the page looks again that many seconds after each of its first looks. */
const looksAgainAfter = [1, 2]

/** A development mailer: nothing leaves this process, and the last 50 mails can be read on a page. */
export function createOutbox(): Outbox {
  const mails: SentMail[] = []
  const router = express.Router()
  router.get('/', (request, response) => {
    // Links in here are as good as passwords.
    const look = Number(request.query.look) || 0
    const seconds = looksAgainAfter[look]
    const nextLook = seconds === undefined ? null : { seconds, path: `/outbox?look=${look + 1}` }
    response.set('Cache-Control', 'no-store').send(outboxPage(mails, languageOf(request), nextLook))
  })
  return {
    mailer: {
      async send(mail) {
        mails.unshift({ ...mail, sentAt: new Date() })
        mails.splice(mostKept)
      },
    },
    router,
  }
}
