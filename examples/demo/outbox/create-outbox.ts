import type { AuthMail, Mailer } from 'doorward'
import express, { type Router } from 'express'
import { languageOf } from '../language'
import { outboxPage } from './page'

export interface Outbox {
  /** The mailer for the library. In a real app, the mailer passes each mail to an SMTP server or a mail service. */
  mailer: Mailer
  /** A page with the mails, only for development. Everybody who can open the page can take over every account. */
  router: Router
}

export interface SentMail extends AuthMail {
  sentAt: Date
}

const mostKept = 50

/** The library sends a mail up to two seconds after its response. So the page reloads itself twice: after 1 second, and 2 seconds later. */
const looksAgainAfter = [1, 2]

/** Returns a mailer for development. The mailer sends no mail, and a page shows the last 50 mails. */
export function createOutbox(): Outbox {
  const mails: SentMail[] = []
  const router = express.Router()
  router.get('/', (request, response) => {
    // The page contains links that are as powerful as passwords. So no cache may store the page.
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
