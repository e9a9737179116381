import supertest from 'supertest'
import type { Mounted } from '../support/app'
import type { OpenApi } from '../support/openapi'

export async function documentOf({ app, prefix }: Pick<Mounted, 'app' | 'prefix'>): Promise<OpenApi> {
  const answer = await supertest(app).get(`${prefix}/openapi.json`)
  if (answer.status !== 200) throw new Error(`/openapi.json answered ${answer.status}: ${answer.text}`)
  return answer.body as OpenApi // that it is one, the linter says
}

/** As Express keeps them: the last handler of each path refuses every other method, and is no route of its own. */
export function mountedRoutes(router: unknown): string[] {
  const { stack } = router as { stack: { route?: { path: string; methods: Record<string, boolean>; stack: unknown[] } }[] } // the same in both majors
  const routes = stack.flatMap(({ route }) => (route && !isRefusal(route.methods) ? [route] : []))
  const names = routes.flatMap(({ path, methods }) => Object.keys(methods).map((method) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`))
  return [...new Set(names)].filter((name) => !name.startsWith('head '))
}

function isRefusal(methods: Record<string, boolean>): boolean {
  return methods['_all'] === true
}
