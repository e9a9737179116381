/** The other processes of races.test.ts: the operations of a whole router each, on the same database. */
import type { AuthRouter } from '../../src'
import { AppError } from '../../src/core/errors'
import { serveTasks } from '../support/two-processes'
import { ahead, routerOn } from './race-host'

export type Task =
  | { verb: 'logIn'; email: string; password: string; sessionToken?: string }
  | { verb: 'logOut'; sessionToken: string }
  | { verb: 'find'; sessionToken: string }
  | { verb: 'deactivate'; userId: string }
  | { verb: 'reset'; token: string; newPassword: string }

export interface Outcome {
  /** What the call answered, in a word; the code of a refusal; or, of a login, the value of the cookie. */
  said: string
  /** Names of what observers in this process heard meanwhile. */
  events: string[]
}

async function perform({ service }: AuthRouter, later: AuthRouter, task: Task): Promise<string> {
  switch (task.verb) {
    case 'logIn': {
      const login = await service.logInToSession(task)
      return login.kind === 'session' ? login.sessionToken : 'challenge'
    }
    case 'logOut':
      await service.logOutSession(task.sessionToken)
      return 'ok'
    case 'find':
      return (await later.service.findSession(task.sessionToken)) ? 'found' : 'nobody'
    case 'deactivate':
      await service.deactivate(task.userId)
      return 'ok'
    case 'reset':
      await service.resetPassword(task)
      return 'ok'
  }
}

serveTasks<Task, Outcome>(async (db) => {
  const [router, later] = [routerOn(db), routerOn(db, ahead)]
  let events: string[] = []
  router.events.on('logout', () => events.push('logout'))
  return async (task) => {
    events = []
    const said = await perform(router, later, task).catch((error: unknown) => {
      if (error instanceof AppError) return error.code
      throw error
    })
    await new Promise((resolve) => setImmediate(resolve)) // listeners run after the operation
    return { said, events }
  }
})
