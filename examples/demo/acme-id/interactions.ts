import express, { type NextFunction, type Request, type RequestHandler, type Response, type Router } from 'express'
import type { Provider } from 'oidc-provider'
import { consentPage, errorPage, signInPage } from './pages'
import { findPerson } from './people'

/** Returns the routes of Acme ID's pages: the page where a person logs in, and the page where the person consents or cancels. */
export function createInteractions(provider: Provider): Router {
  const router = express.Router()
  const form = express.urlencoded({ extended: false })

  router.get('/interaction/:uid', handle(showPrompt))
  router.post('/interaction/:uid/sign-in', form, handle(signIn))
  router.post('/interaction/:uid/consent', handle(consent))
  router.post('/interaction/:uid/cancel', handle(cancel))
  router.use('/interaction', showError)
  return router

  async function showPrompt(request: Request, response: Response) {
    const { uid, prompt, session, params } = await provider.interactionDetails(request, response)
    const client = await provider.Client.find(String(params.client_id))
    const application = client?.clientName ?? 'An application'
    const person = findPerson(session?.accountId)
    response.set('Cache-Control', 'no-store')
    response.send(prompt.name === 'consent' && person ? consentPage(uid, application, person) : signInPage(uid, application))
  }

  async function signIn(request: Request, response: Response) {
    const person = findPerson(request.body?.person)
    if (!person) return void response.status(400).send(errorPage('Nobody of that name has an account at Acme ID.'))
    await provider.interactionFinished(request, response, { login: { accountId: person.id } }, { mergeWithLastSubmission: false })
  }

  async function consent(request: Request, response: Response) {
    const { grantId, params, prompt, session } = await provider.interactionDetails(request, response)
    if (!session) throw new Error('consent was given before anybody signed in')
    const known = grantId ? await provider.Grant.find(grantId) : undefined
    const grant = known ?? new provider.Grant({ accountId: session.accountId, clientId: String(params.client_id) })
    const missing = prompt.details.missingOIDCScope
    if (Array.isArray(missing)) grant.addOIDCScope(missing.join(' '))
    // `mergeWithLastSubmission` keeps the login of this attempt, so that the person is not asked twice.
    await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true })
  }

  async function cancel(request: Request, response: Response) {
    const refusal = { error: 'access_denied', error_description: 'the person chose not to share their account' }
    await provider.interactionFinished(request, response, refusal, { mergeWithLastSubmission: false })
  }
}

/** Passes a rejection to `next`, because Express 4 does not handle rejected promises. */
function handle(work: (request: Request, response: Response) => Promise<void>): RequestHandler {
  return (request, response, next) => {
    work(request, response).catch(next)
  }
}

function showError(error: unknown, _request: Request, response: Response, next: NextFunction) {
  if (response.headersSent) return next(error)
  response.status(400).send(errorPage('This sign-in has expired or was already finished. Go back to the application and start again.'))
}
