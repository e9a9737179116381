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

/** A development mailer: nothing leaves this process, and the last 50 mails can be read on a page. */
export function createOutbox(): Outbox {
  const mails: SentMail[] = []
  const router = express.Router()
  router.get('/', (request, response) => {
    // Links in here are as good as passwords.
    response.set('Cache-Control', 'no-store').send(outboxPage(mails, languageOf(request)))
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
