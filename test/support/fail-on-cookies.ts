import { afterAll, afterEach } from 'vitest'
import { cookiesSet, impossibleCookies } from './cookie-check'

/** An answer alone may be what a test expects. */
function fail(): void {
  const told = impossibleCookies.splice(0)
  if (told.length > 0) throw new Error(told.join('\n'))
}

afterEach(fail)
afterAll(() => {
  cookiesSet.clear()
  fail()
})
