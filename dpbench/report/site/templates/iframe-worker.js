// Browsers start no workers for a page that is opened from disk: there the script of the search runs in a hidden frame.
(() => {
  if (location.protocol !== "file:") return;
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      Object.assign(frame, {hidden: true, title: "search"});
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}));
      const load = url => new Promise((done, failed) => {
        const script = this.inside.document.createElement("script");
        Object.assign(script, {src: url, onload: done, onerror: failed});
        this.inside.document.body.append(script);
      });
      this.inside.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => load(url)), Promise.resolve());
      this.loaded = load(address);
    }
    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", {data})));
    }
  };
})();
