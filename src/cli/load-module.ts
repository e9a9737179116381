import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { UsageError } from './answer'

/**
 * Returns the exports of a module of the app. The app's own tsx loads TypeScript. Without tsx, Node loads TypeScript if Node can strip
 * types.
 * @throws UsageError if tsx is missing and Node cannot load the module. An error of the module passes through.
 */
export async function loadModule(path: string, folder: string): Promise<Record<string, unknown>> {
  const url = pathToFileURL(path).href
  if (!/\.[mc]?ts$/.test(path) || (await registerTsx(folder))) return import(url)
  if (!('typescript' in process.features && process.features.typescript))
    throw new UsageError(
      'This auth module is TypeScript. Run `npm install --save-dev tsx`, or use Node 22.18 or later, which reads it by itself.',
    )
  try {
    return await import(url)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    // For example, Node rejects an enum, and `import` in a CommonJS package.
    throw new UsageError('Node does not read this TypeScript by itself. Run `npm install --save-dev tsx`.', { cause: error })
  }
}

/** Returns the exports of a package that the folder's modules can load; null if the modules cannot load the package. */
export async function loadPackage(name: string, folder: string): Promise<Record<string, unknown> | null> {
  const path = resolved(createRequire(join(folder, 'package.json')), name)
  return path === null ? null : import(pathToFileURL(path).href)
}

/** Registers tsx for both module systems, as `node --import tsx` does. Returns false if the app does not have tsx. */
async function registerTsx(folder: string): Promise<boolean> {
  const tsx = resolved(createRequire(join(folder, 'package.json')), 'tsx')
  if (tsx !== null) await import(pathToFileURL(tsx).href)
  return tsx !== null
}

function resolved(require: NodeJS.Require, name: string): string | null {
  try {
    return require.resolve(name)
  } catch {
    return null
  }
}
