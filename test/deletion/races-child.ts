/** The other processes of races.test.ts, by a whole router each. */

import type { Knex } from 'knex'
import { type AuthRouter, createAuthRouter, createKnexStore, GitHubClient } from '../../src'
import { deleteOwnAccount } from '../../src/accounts/deletion/delete-account'
import { type LoadOperations, OPERATIONS } from '../../src/admin/operations/operations-key'
import { AppError } from '../../src/core/errors'
import { testedContext } from '../../src/router/create-auth-router'
import { fastHasher } from '../support/fast-hasher'
import { serveTasks } from '../support/two-processes'

export const password = 'a quiet harbour in winter'

export type Step =
  | { do: 'delete' | 'close' | 'link'; userId: string }
  | { do: 'logIn' | 'requestLogin' | 'import'; email: string }
  | { do: 'refresh' | 'restore'; token: string }
  | { do: 'purge' }

/** All at once. */
export type Task = readonly Step[]

/** `ok`, or the code of the refusal, for each step. */
export type Outcome = readonly string[]

/** @param now so far ahead that every closed account is due, for the purge of a race */
export function routerOn(knex: Knex, now: () => Date = () => new Date()): AuthRouter {
  return createAuthRouter({
    settings: {
      jwtSecret: 'the same secret in each process, long enough',
      publicUrl: 'https://app.example.test',
      oauthEnabled: true,
      passkeysEnabled: true,
      webauthnRpName: 'Example',
      emailLogin: 'link',
      emailLoginUrlTemplate: 'https://app.example.test/in/{token}',
      accountDeletion: 'soft',
      maxSessionsPerUser: 3,
    },
    store: createKnexStore({ knex }),
    providers: { corp: new GitHubClient({ clientId: 'an app', clientSecret: 'a secret of it' }) },
    environment: 'test',
    outbox: true,
    passwordHasher: fastHasher(),
    throttle: { login: false, links: false, mail: false, routes: false },
    logger: { info() {}, warn() {}, error: console.error },
    now,
  })
}

async function perform(router: AuthRouter, step: Step): Promise<unknown> {
  const { service } = router
  switch (step.do) {
    case 'delete':
      return service.deleteUser(step.userId)
    case 'close': {
      const ctx = testedContext(router)
      const user = await ctx?.store.users.find(step.userId)
      return ctx && user && deleteOwnAccount(ctx, { user, session: null, locale: 'en-US' })
    }
    case 'link':
      return service.linkIdentity(step.userId, {
        provider: 'corp',
        subject: `of ${step.userId}`,
        email: null,
        emailVerified: null,
        name: null,
        picture: null,
        raw: {},
      })
    case 'logIn':
      return service.logIn({ email: step.email, password })
    case 'requestLogin':
      return service.requestEmailLogin(step.email)
    case 'refresh':
      return service.refresh(step.token)
    case 'restore':
      return service.restoreAccount(step.token)
    case 'purge':
      return (await operationsOf(router)).purge()
    case 'import': {
      const importer = await (await operationsOf(router)).importUsers({ isDryRun: false, keepsIds: false })
      await importer.add([{ email: step.email }])
      return importer.end()
    }
  }
}

function operationsOf(router: AuthRouter): ReturnType<LoadOperations> {
  return (router as unknown as { [OPERATIONS]: LoadOperations })[OPERATIONS]()
}

if (process.send) {
  serveTasks<Task, Outcome>(
    (knex) => {
      const [present, later] = [routerOn(knex), routerOn(knex, () => new Date(Date.now() + 31 * 86_400_000))]
      return async (task) => {
        const ends = await Promise.allSettled(task.map((step) => perform(step.do === 'purge' ? later : present, step)))
        return ends.map((end) =>
          end.status === 'fulfilled' ? 'ok' : end.reason instanceof AppError ? end.reason.code : String(end.reason),
        )
      }
    },
    { connections: 8 },
  )
}
